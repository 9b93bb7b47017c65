//! The weights of published models whose projections are measured.

/// The feed-forward block of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Model {
    /// Its name, as written in labels.
    pub name: &'static str,
    /// The width of the residual stream (`hidden_size`).
    pub hidden: u64,
    /// The width inside the block (`intermediate_size`).
    pub intermediate: u64,
    /// True if a gate stands beside the up projection and both are one product.
    pub gated: bool,
}

/// The models. Sources: Qwen3's `config.json` (Qwen/Qwen3-8B, Qwen/Qwen3-32B on Hugging Face); "The
/// Llama 3 Herd of Models", arXiv 2407.21783, table 3; Gemma 2's `gemma/config.py` in
/// google/gemma_pytorch (arXiv 2408.00118 counts both halves: 28672 and 73728); "Language Models are
/// Few-Shot Learners", arXiv 2005.14165, table 2.1 and section 2.1 (the inner width is 4 d_model).
pub const MODELS: [Model; 8] = [
    gated("Qwen3-8B", 4096, 12288),
    gated("Qwen3-32B", 5120, 25600),
    gated("LLaMA-3.1-8B", 4096, 14336),
    gated("LLaMA-3.1-70B", 8192, 28672),
    gated("LLaMA-3.1-405B", 16384, 53248),
    gated("Gemma-2-9B", 3584, 14336),
    gated("Gemma-2-27B", 4608, 36864),
    Model {
        name: "GPT-3-175B",
        hidden: 12288,
        intermediate: 49152,
        gated: false,
    },
];

const fn gated(name: &'static str, hidden: u64, intermediate: u64) -> Model {
    Model {
        name,
        hidden,
        intermediate,
        gated: true,
    }
}

/// One weight \[n, k\] with its label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Weight {
    /// The model and the projection.
    pub label: String,
    /// Rows, which are columns of the result.
    pub n: u64,
    /// Columns, along which products are summed.
    pub k: u64,
}

/// The projections into and out of every model's block.
#[must_use]
pub fn weights() -> Vec<Weight> {
    MODELS
        .iter()
        .flat_map(|model| {
            let (inner, name) = if model.gated {
                (2 * model.intermediate, "gate_up")
            } else {
                (model.intermediate, "up")
            };
            let weight = |name, n, k| Weight {
                label: format!("{} {name}", model.name),
                n,
                k,
            };
            [
                weight(name, inner, model.hidden),
                weight("down", model.hidden, model.intermediate),
            ]
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sixteen_weights() {
        let all = weights();
        assert_eq!(all.len(), 16);
        let find = |label: &str| all.iter().find(|w| w.label == label).map(|w| (w.n, w.k));
        assert_eq!(find("Qwen3-8B gate_up"), Some((24576, 4096)));
        assert_eq!(find("LLaMA-3.1-405B down"), Some((16384, 53248)));
        assert_eq!(find("GPT-3-175B up"), Some((49152, 12288)));
        assert_eq!(find("GPT-3-175B down"), Some((12288, 49152)));
        // Tensor maps want strides that are multiples of 16 bytes.
        assert!(all.iter().all(|w| w.n % 128 == 0 && w.k % 128 == 0));
    }
}
