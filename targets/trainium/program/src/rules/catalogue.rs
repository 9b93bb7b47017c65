//! The rules by number, as the dialect's documentation, the messages and the tests cite them.

/// One documented rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Its number.
    pub id: &'static str,
    /// What it asks.
    pub text: &'static str,
    /// Where it is documented (the tags of [`crate::facts`]).
    pub source: &'static str,
}

/// Lists rules.
macro_rules! rules {
    ($($id:literal, $source:literal, $text:literal;)*) => {
        /// Every rule, in the order of the documentation.
        pub const RULES: &[Rule] = &[$(Rule { id: $id, text: $text, source: $source },)*];
    };
}

rules! {
    "B1", "A1", "a tile on chip has 1 to 128 partitions, and begins and ends inside them";
    "B2", "ISA, NKG", "a tile in SBUF fits the bytes of a partition, all its copies together";
    "B3", "MIG", "a tile in PSUM begins at a bank";
    "B4", "A1", "a tile in PSUM fits the 16 KiB of a partition, all its copies together";
    "B5", "ISA", "elements are 8, 16 or 32 bits wide";
    "O1", "A1", "an operand has 1 to 128 partitions, consecutive ones, counted by its first dimension alone";
    "O2", "A1", "an operand of an engine begins at a multiple of 32 (up to 32 partitions), 64 (up to 64) or 128 (more); DMA begins anywhere";
    "O3", "A1, AP", "an access pattern has up to 4 free dimensions of up to 65535, with steps that fit 16 bits";
    "O4", "A1", "an operand has up to 65536 elements in SBUF, 16 KiB in PSUM, a partition";
    "O5", "AP", "an access stays inside its tensor";
    "O6", "A1, MIG", "the tensor engine reads SBUF and writes PSUM, gpsimd reaches SBUF alone, DMA reaches HBM and SBUF alone, the others SBUF and PSUM";
    "O7", "ISA, A2", "the engine executes the operation on this chip";
    "O8", "A1", "all operands have the same partitions";
    "O9", "ISA", "all operands have the same elements a partition";
    "O10", "AP", "what is written has no element twice";
    "O11", "ISA", "a per-partition operand is a tile of one f32 element in each partition";
    "MM1", "ISA", "stationary and moving have the same K on their partitions";
    "MM2", "ISA", "stationary has at most 128 columns";
    "MM3", "ISA", "moving has at most 512 columns";
    "MM4", "ISA", "the destination is [M, N]";
    "MM5", "MIG, A1", "the destination stays inside one bank";
    "MM6", "ISA", "operands are floats; f32 goes with f32 alone";
    "MM7", "ISA", "the destination is f32";
    "TR1", "ISA", "a transpose of [P, F] is [F, P]";
    "TR2", "ISA", "the vector engine transposes at most 32 x 32, the tensor engine 128 x 128";
    "TR3", "ISA", "a transpose keeps the type; the tensor engine of trn1 writes f32, as its products do";
    "CP1", "ISA", "a transfer has as many elements on both sides";
    "CP2", "ISA", "the predicate is u8, u16 or u32";
    "CP3", "ISA", "a predicated copy keeps the type";
    "CP4", "ISA", "source and predicate are not both in PSUM";
    "CP5", "ISA", "a value that fills integers is an integer of the type";
    "SH1", "ISA", "a shuffle's mask has 32 entries: 0 to 31, or 255";
    "SH2", "ISA", "a shuffle has a multiple of 32 partitions, and keeps the type";
    "AC1", "ISA", "a bias is a tile of one float element in each partition";
    "AC2", "ISA", "sums are read out of the registers only by an instruction that adds to them";
    "EW1", "ISA", "two tiles that are read together are not both in PSUM";
    "EW2", "ISA", "both functions are arithmetic, or both bitwise";
    "EW3", "ISA", "bitwise functions take integers of one type throughout";
    "RD1", "ISA", "a reduction is over the last free dimensions, at least one";
    "RD2", "ISA", "the result of a reduction has the dimensions that are left";
    "RD3", "ISA", "a reduction is by add, multiply, maximum, minimum, a logical or a bitwise function; with a first function add, multiply, maximum or minimum; over partitions add, maximum, bitwise and, bitwise or";
    "SE1", "ISA", "a pattern has a step for each free dimension of the destination";
    "SE2", "ISA", "a selection is by a comparison";
    "BN1", "ISA", "bn_stats takes up to 512 elements and gives 6, bn_aggr takes triples and gives 2";
    "MX1", "ISA", "the eight largest are found among 8 to 16384 elements";
    "MX2", "ISA", "the eight values, and the eight indices as u32, are one tile of 8";
    "R1", "A1", "nothing is read that was not written";
    "R2", "ISA", "a product adds only to what a product wrote, all of its elements being alike";
    "R3", "A1", "what one engine writes another reads or writes only after it: a semaphore stands between";
    "R4", "ISA", "a function's argument is in the range of its table";
}

/// The rule of this number.
#[must_use]
pub fn rule(id: &str) -> Option<&'static Rule> {
    RULES.iter().find(|rule| rule.id == id)
}
