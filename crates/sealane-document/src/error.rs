sealane_message::errors! {
    /// The meaning of every code of this crate.
    pub const ERRORS;

    /// Why what a neighbour says it holds cannot be read.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
    #[non_exhaustive]
    pub enum ExchangeError {
        /// The bytes end within a field, or go on behind the last one.
        #[error("the message ends within a field, or goes on behind it")]
        #[code("SL-EXCHANGE-01", "ExchangeLength")]
        #[cause("what a neighbour says it holds ends within a field, or goes on behind it")]
        #[hint("Update the older of the two machines.")]
        Length,
        /// Origins, types or stamps out of order, or a number beyond its bound.
        #[error("what the neighbour says it holds is out of order or beyond a bound")]
        #[code("SL-EXCHANGE-02", "ExchangeOrder")]
        #[cause("what a neighbour says it holds is out of order or beyond a bound")]
        #[hint("Update the older of the two machines.")]
        Order,
        /// A sort of message that this version does not have.
        #[error("a message of an unknown sort")]
        #[code("SL-EXCHANGE-03", "ExchangeUnknown")]
        #[cause("a neighbour sends a sort of message about documents that is not known")]
        #[hint("Update the older of the two machines.")]
        Unknown,
    }
}
