//! Vector clocks over the threads and asynchronous agents of a cluster (Lamport; FastTrack, PLDI 2009).
//!
//! An entity is a thread, the copy agent of a thread, or an agent of the async proxy. Entities of
//! other clusters are known through snapshots, which only release-acquire pairs in global memory pass on.

use std::collections::BTreeMap;
use std::sync::Arc;

/// What is known to have happened: a clock for each entity.
#[derive(Debug, Clone, Default)]
pub(crate) struct Clock {
    local: Vec<u32>,
    foreign: BTreeMap<u32, Arc<Vec<u32>>>,
}

fn join_into(into: &mut Vec<u32>, from: &[u32]) {
    if into.len() < from.len() {
        into.resize(from.len(), 0);
    }
    for (a, b) in into.iter_mut().zip(from) {
        *a = (*a).max(*b);
    }
}

/// Whether `a` has room for all entities of `b`, and none is further in `b`.
fn covers(a: &[u32], b: &[u32]) -> bool {
    a.len() >= b.len() && b.iter().zip(a).all(|(b, a)| b <= a)
}

impl Clock {
    pub(crate) fn new(entities: usize) -> Self {
        Self {
            local: vec![0; entities],
            foreign: BTreeMap::new(),
        }
    }

    pub(crate) fn get(&self, entity: u32) -> u32 {
        self.local.get(entity as usize).copied().unwrap_or(0)
    }

    pub(crate) fn raise(&mut self, entity: u32, clock: u32) {
        if let Some(c) = self.local.get_mut(entity as usize) {
            *c = (*c).max(clock);
        }
    }

    pub(crate) fn join(&mut self, other: &Self) {
        join_into(&mut self.local, &other.local);
        for (cluster, snapshot) in &other.foreign {
            self.join_foreign(*cluster, snapshot);
        }
    }

    /// Whether it holds all that `other` does.
    fn covers(&self, other: &Self) -> bool {
        other.foreign.iter().all(|(cluster, theirs)| {
            let mine = self.foreign.get(cluster);
            mine.is_some_and(|mine| Arc::ptr_eq(mine, theirs) || covers(mine, theirs))
        }) && covers(&self.local, &other.local)
    }

    fn join_foreign(&mut self, cluster: u32, snapshot: &Arc<Vec<u32>>) {
        match self.foreign.get_mut(&cluster) {
            None => {
                self.foreign.insert(cluster, snapshot.clone());
            }
            Some(known) if Arc::ptr_eq(known, snapshot) => {}
            Some(known) => join_into(Arc::make_mut(known), snapshot),
        }
    }

    /// The clock as another cluster may learn it.
    pub(crate) fn export(&self, cluster: u32) -> Foreign {
        let mut all = self.foreign.clone();
        all.insert(cluster, Arc::new(self.local.clone()));
        Foreign(all)
    }

    /// What both know.
    fn meet(&mut self, other: &Self) {
        let known = other.local.iter().copied().chain(std::iter::repeat(0));
        for (a, b) in self.local.iter_mut().zip(known) {
            *a = (*a).min(b);
        }
        self.foreign.retain(|cluster, mine| {
            let Some(theirs) = other.foreign.get(cluster) else {
                return false;
            };
            if !Arc::ptr_eq(mine, theirs) {
                let mine = Arc::make_mut(mine);
                mine.truncate(theirs.len());
                for (a, b) in mine.iter_mut().zip(theirs.iter()) {
                    *a = (*a).min(*b);
                }
            }
            true
        });
    }

    /// Learns what another thread released through global memory.
    pub(crate) fn import(&mut self, me: u32, from: &Foreign) {
        for (cluster, snapshot) in &from.0 {
            if *cluster == me {
                join_into(&mut self.local, snapshot);
            } else {
                self.join_foreign(*cluster, snapshot);
            }
        }
    }

    /// Whether entity `entity` of `cluster` at `clock` happened before.
    pub(crate) fn knows(&self, me: u32, cluster: u32, entity: u32, clock: u32) -> bool {
        if cluster == me {
            return clock <= self.get(entity);
        }
        let known = self
            .foreign
            .get(&cluster)
            .and_then(|c| c.get(entity as usize));
        known.is_some_and(|&known| clock <= known)
    }
}

/// A clock that travels between clusters.
#[derive(Debug, Clone, Default)]
pub(crate) struct Foreign(BTreeMap<u32, Arc<Vec<u32>>>);

impl Foreign {
    pub(crate) fn join(&mut self, other: &Self) {
        for (cluster, snapshot) in &other.0 {
            match self.0.get_mut(cluster) {
                None => {
                    self.0.insert(*cluster, snapshot.clone());
                }
                Some(known) => join_into(Arc::make_mut(known), snapshot),
            }
        }
    }
}

/// Both views that an entity has: of everything, and of what a proxy fence made visible to the async proxy.
#[derive(Debug, Clone, Default)]
pub(crate) struct View {
    pub(crate) all: Arc<Clock>,
    pub(crate) proxy: Arc<Clock>,
}

impl View {
    pub(crate) fn new(entities: usize) -> Self {
        let zero = Arc::new(Clock::new(entities));
        Self {
            all: zero.clone(),
            proxy: zero,
        }
    }

    /// Whether they share their clocks, and so are equal.
    pub(crate) fn same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.all, &other.all) && Arc::ptr_eq(&self.proxy, &other.proxy)
    }

    /// Whether it holds all that `other` does.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        self.all.covers(&other.all) && self.proxy.covers(&other.proxy)
    }

    /// What all of the views hold.
    pub(crate) fn meet(views: &[&Self]) -> Self {
        let Some((first, rest)) = views.split_first() else {
            return Self::default();
        };
        let mut out = (*first).clone();
        for view in rest {
            for (mine, theirs) in [(&mut out.all, &view.all), (&mut out.proxy, &view.proxy)] {
                if !Arc::ptr_eq(mine, theirs) {
                    Arc::make_mut(mine).meet(theirs);
                }
            }
        }
        out
    }

    pub(crate) fn join(&mut self, other: &Self) {
        join_arc(&mut self.all, &other.all);
        join_arc(&mut self.proxy, &other.proxy);
    }
}

fn join_arc(a: &mut Arc<Clock>, b: &Arc<Clock>) {
    if Arc::ptr_eq(a, b) {
        return;
    }
    // Clocks that are shared are compared by their address: sharing spares most of the work.
    if b.covers(a) {
        *a = b.clone();
    } else if !a.covers(b) {
        Arc::make_mut(a).join(b);
    }
}

/// The clocks of a warp's lanes. Lanes that know the same share one clock.
#[derive(Debug, Clone)]
pub(crate) struct WarpClocks {
    first: u32,
    own: [u32; 32],
    views: Vec<View>,
    /// What a fence released, for relaxed stores that follow.
    fenced: Vec<Option<View>>,
    /// What relaxed loads saw, for fences that follow.
    seen: Vec<Option<View>>,
}

fn lanes(mask: u32) -> impl Iterator<Item = usize> {
    (0..32).filter(move |i| mask >> i & 1 == 1)
}

impl WarpClocks {
    /// Clocks of the warp whose lane 0 is entity `first`.
    pub(crate) fn new(first: u32, view: &View) -> Self {
        Self {
            first,
            own: [1; 32],
            views: vec![view.clone(); 32],
            fenced: vec![None; 32],
            seen: vec![None; 32],
        }
    }

    pub(crate) fn entity(&self, lane: usize) -> u32 {
        self.first + lane as u32
    }

    pub(crate) fn own(&self, lane: usize) -> u32 {
        self.own[lane]
    }

    pub(crate) fn view(&self, lane: usize) -> &View {
        &self.views[lane]
    }

    /// What the lanes of `mask` release together: all that they know and did. Their clocks tick.
    pub(crate) fn release(&mut self, mask: u32) -> View {
        let mut out: Option<View> = None;
        let mut last: Option<View> = None;
        for lane in lanes(mask) {
            let view = &self.views[lane];
            let same = last.as_ref().is_some_and(|last| last.same(view));
            if !same {
                match &mut out {
                    None => out = Some(view.clone()),
                    Some(out) => out.join(view),
                }
                last = Some(view.clone());
            }
        }
        let mut out = out.unwrap_or_default();
        let all = Arc::make_mut(&mut out.all);
        for lane in lanes(mask) {
            all.raise(self.first + lane as u32, self.own[lane]);
            self.own[lane] += 1;
        }
        out
    }

    /// The lanes of `mask` learn `view`.
    pub(crate) fn acquire(&mut self, mask: u32, view: &View) {
        let mut done: Option<(View, View)> = None;
        for lane in lanes(mask) {
            let old = &self.views[lane];
            if let Some((before, after)) = &done
                && before.same(old)
            {
                self.views[lane] = after.clone();
                continue;
            }
            let mut new = old.clone();
            new.join(view);
            done = Some((old.clone(), new.clone()));
            self.views[lane] = new;
        }
    }

    /// The lanes of `mask` learn that an entity has reached `clock`.
    pub(crate) fn learn(&mut self, mask: u32, entity: u32, clock: u32) {
        let mut done: Option<(Arc<Clock>, Arc<Clock>)> = None;
        for lane in lanes(mask) {
            let old = self.views[lane].all.clone();
            let new = match &done {
                Some((before, after)) if Arc::ptr_eq(before, &old) => after.clone(),
                _ => {
                    let mut new = (*old).clone();
                    new.raise(entity, clock);
                    Arc::new(new)
                }
            };
            self.views[lane].all = new.clone();
            done = Some((old, new));
        }
    }

    /// The lanes of `mask` synchronise with one another.
    pub(crate) fn sync(&mut self, mask: u32) {
        let view = self.release(mask);
        for lane in lanes(mask) {
            self.views[lane] = view.clone();
        }
    }

    /// A proxy fence: what each lane knows becomes visible to the async proxy.
    pub(crate) fn proxy_fence(&mut self, mask: u32) {
        let mut done: Option<(Arc<Clock>, Arc<Clock>)> = None;
        for lane in lanes(mask) {
            let all = self.views[lane].all.clone();
            if let Some((before, after)) = &done
                && Arc::ptr_eq(before, &all)
            {
                self.views[lane].proxy = after.clone();
                continue;
            }
            // Lanes that share a clock share the fenced one: who synchronises with one lane only
            // still lacks the other lanes' steps in `all`, and both are asked.
            let mut fenced = (*all).clone();
            for other in lanes(mask) {
                fenced.raise(self.first + other as u32, self.own[other]);
            }
            let fenced = Arc::new(fenced);
            done = Some((all, fenced.clone()));
            self.views[lane].proxy = fenced;
        }
        for lane in lanes(mask) {
            self.own[lane] += 1;
        }
    }

    /// A memory fence: acquires what relaxed loads saw and arms relaxed stores that follow.
    pub(crate) fn fence(&mut self, mask: u32, acquire: bool, release: bool) {
        for lane in lanes(mask) {
            if acquire && let Some(seen) = self.seen[lane].take() {
                self.views[lane].join(&seen);
            }
            if release {
                let view = self.release(1 << lane);
                self.fenced[lane] = Some(view);
            }
        }
    }

    /// What a relaxed store or atomic of `lane` publishes: what its last fence released.
    pub(crate) fn fenced(&self, lane: usize) -> Option<&View> {
        self.fenced[lane].as_ref()
    }

    /// A relaxed load of `lane` saw `view`: the next fence acquires it.
    pub(crate) fn see(&mut self, lane: usize, view: &View) {
        match &mut self.seen[lane] {
            Some(seen) => seen.join(view),
            none => *none = Some(view.clone()),
        }
    }
}
