//! The five messages whose sizes the report on codecs gives.

/// Name and JSON text.
pub(crate) const FIVE: [(&str, &str); 5] = [
    ("tiny", r#"{"credit":10}"#),
    (
        "small",
        concat!(
            r#"{"id":"env-abc123","ts":"2025-10-20T12:00:00Z","type":"notify","#,
            r#""payload":{"status":"ok","count":42}}"#
        ),
    ),
    (
        "medium",
        concat!(
            r#"{"deliver":{"id":"msg-xyz-789","stream":"agents/Worker/inbox","attempt":1,"#,
            r#""data":{"id":"task-456","ts":"2025-10-20T12:00:00.123Z","type":"job.execute","#,
            r#""payload":{"jobId":"job-789","taskName":"process-data","#,
            r#""params":{"limit":100,"offset":0,"filter":"active"},"priority":5}}}}"#
        ),
    ),
    (
        "array",
        concat!(
            r#"{"items":[{"id":1,"name":"item1","value":10.5},"#,
            r#"{"id":2,"name":"item2","value":20.3},{"id":3,"name":"item3","value":30.7},"#,
            r#"{"id":4,"name":"item4","value":40.1},{"id":5,"name":"item5","value":50.9}]}"#
        ),
    ),
    (
        "string",
        concat!(
            r#"{"id":"msg-string-test","message":"This is a longer text message that contains "#,
            r#"some meaningful content for testing purposes.","metadata":{"author":"system","#,
            r#""category":"notification","tags":["important","urgent","action-required"]}}"#
        ),
    ),
];
