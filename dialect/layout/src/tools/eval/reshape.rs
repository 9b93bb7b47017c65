//! The operations on the parts and the axes of one layout: slices, packing, copies, other axes.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::Deserialize;
use serde_json::{Value, json};

use super::{Answer, inputs, layout, named, unknown};
use crate::json::{Extent, Extents};
use crate::{Axis, Layout};

pub(super) fn run(op: &str, given: Value) -> Answer {
    match op {
        "slice" | "compose_slice" => inputs::<Slice>(given)?.slice(),
        "slice_cover" => inputs::<Slice>(given)?.cover(),
        "pack" => inputs::<Pack>(given)?.pack(),
        "unpack" => inputs::<Pack>(given)?.unpack(),
        "storage" => inputs::<Storage>(given)?.answer(),
        "broadcast" => inputs::<Broadcast>(given)?.answer(),
        "fuse_axes" => inputs::<Fuse>(given)?.answer(),
        "split_axes" => inputs::<Split>(given)?.answer(),
        _ => unknown(op),
    }
}

#[derive(Deserialize)]
struct Slice {
    layout: Layout,
    shape: Extents,
    region: Vec<[Extent; 2]>,
}

impl Slice {
    fn ranges(&self) -> Vec<Range<i64>> {
        let region = self.region.iter();
        region.map(|[begin, end]| begin.0..end.0).collect()
    }

    fn slice(&self) -> Answer {
        layout(self.layout.slice(&self.shape, &self.ranges())?)
    }

    fn cover(&self) -> Answer {
        let cover = self.layout.slice_cover(&self.shape, &self.ranges())?;
        let part = |(region, layout): &(Vec<Range<i64>>, Layout)| {
            let region: Vec<_> = region.iter().map(|r| [r.start, r.end]).collect();
            json!({"region": region, "layout": layout})
        };
        named("boxes", cover.iter().map(part).collect::<Vec<_>>())
    }
}

#[derive(Deserialize)]
struct Pack {
    layout: Layout,
    num: i64,
    axis: Axis,
}

impl Pack {
    fn pack(&self) -> Answer {
        layout(self.layout.pack(self.num, self.axis)?)
    }

    fn unpack(&self) -> Answer {
        layout(self.layout.unpack(self.num, self.axis)?)
    }
}

#[derive(Deserialize)]
struct Storage {
    layout: Layout,
    thread_axes: Vec<Axis>,
}

impl Storage {
    fn answer(&self) -> Answer {
        layout(self.layout.storage(&self.thread_axes)?)
    }
}

#[derive(Deserialize)]
struct Broadcast {
    layout: Layout,
    num: i64,
    position: usize,
    axis: Axis,
}

impl Broadcast {
    fn answer(&self) -> Answer {
        layout(self.layout.broadcast(self.num, self.position, self.axis)?)
    }
}

#[derive(Deserialize)]
struct Fuse {
    layout: Layout,
    rules: BTreeMap<Axis, (Axis, i64)>,
}

impl Fuse {
    fn answer(&self) -> Answer {
        layout(self.layout.fuse_axes(&self.rules)?)
    }
}

#[derive(Deserialize)]
struct Split {
    layout: Layout,
    axis: Axis,
    outer: Axis,
    inner: Axis,
    extent: i64,
}

impl Split {
    fn answer(&self) -> Answer {
        let (outer, inner) = (self.outer, self.inner);
        layout(
            self.layout
                .split_axes(self.axis, outer, inner, self.extent)?,
        )
    }
}
