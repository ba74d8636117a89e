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
        #[code("SL-DOC-01", "DocumentTooShort")]
        #[cause("the bytes of a document end within one of its fields")]
        #[hint("Send the body as its encoder wrote it, and check that its data type is the one \
                that the frame names.")]
        TooShort,
        /// Bytes follow the last field.
        #[error("bytes follow the document")]
        #[code("SL-DOC-02", "DocumentTooLong")]
        #[cause("bytes follow the last field of a document")]
        #[hint("Send the body as its encoder wrote it, and check that its data type is the one \
                that the frame names.")]
        TooLong,
        /// A flag is set that has no meaning.
        #[error("bits of the document's flags that must be zero are not")]
        #[code("SL-DOC-03", "DocumentReservedBits")]
        #[cause("bits of a document's flags that must be zero are not")]
        #[hint("Update this program: a later version may have given them a meaning.")]
        ReservedBits,
        /// A field is beyond its range, out of order, or longer than it has to be.
        #[error("the document's {field} is out of range")]
        #[code("SL-DOC-04", "DocumentOutOfRange")]
        #[cause("a field of a document is out of range")]
        #[hint("See spec/document.md for the range of each field.")]
        OutOfRange {
            /// The field.
            field: &'static str,
        },
        /// Text is not UTF-8, or has a control character.
        #[error("the document's {field} is no plain text")]
        #[code("SL-DOC-05", "DocumentText")]
        #[cause("a text of a document is not UTF-8 or has a control character")]
        #[hint("Write one line of plain text.")]
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
