use sealane_message::DataType;

sealane_message::errors! {
    /// The meaning of every code of documents.
    pub const ERRORS;

    /// Why bytes are not a document, or a document cannot be written.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
    #[non_exhaustive]
    pub enum DocumentError {
        /// The bytes end within a field.
        #[error("the document ends within a field")]
        #[code("SL-DOC-01", "DocumentMalformed")]
        #[cause("the bytes of a document are not what its data type says")]
        #[hint("Send the body as its encoder wrote it, and under the data type that the frame \
                names; spec/document.md has the range of each field.")]
        TooShort,
        /// Bytes follow the last field.
        #[error("bytes follow the document")]
        #[same_as(TooShort)]
        TooLong,
        /// A flag is set that has no meaning.
        #[error("bits of the document's flags that must be zero are not")]
        #[code("SL-DOC-03", "DocumentReservedBits")]
        #[cause("bits of a document's flags that must be zero are not")]
        #[hint("Update this program: a later version may have given them a meaning.")]
        ReservedBits,
        /// A field is beyond its range, out of order, or longer than it has to be.
        #[error("the document's {field} is out of range")]
        #[same_as(TooShort)]
        OutOfRange {
            /// The field.
            field: &'static str,
        },
        /// Text is not UTF-8, or has a control character.
        #[error("the document's {field} is no plain text")]
        #[same_as(TooShort)]
        Text {
            /// The field.
            field: &'static str,
        },
        /// Frames of that data type carry something else.
        #[error("no document has the data type {data_type}")]
        #[code("SL-DOC-06", "NoDocument")]
        #[cause("no document has that data type")]
        #[hint("See spec/document.md for the data types of documents.")]
        NoDocument {
            /// The data type.
            data_type: DataType,
        },
    }
}
