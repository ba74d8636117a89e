// Made by `node scripts/codes.js` from spec/errors.json.

/** Refusals that the same request always gets. */
export const FINAL = `
  Malformed DatumTooLarge DuplicateKey OutsideModel RecordDictionary WrongKind NoCommonCodec
  InvalidJSON DecodeError InvalidEnvelope InvalidParameter UnknownOp PatternNeedsReader
  NotAConsumer UnknownStream OffsetMismatch KeyReused TooLarge StreamRemoved NotSealed
  SealMismatch FrameMalformed FolderInUse NotAStore StoreTooNew TargetExists NoStore
  UnknownField NumberSkipped NumberForgotten SessionTaken CreditExceeded UnknownCondition
  ConsumerRemoved BeyondEnd NotDelayed UnknownConsumer ConsumerNotYours RuleTie UnknownRule
  UnknownCodec NotFound MethodNotAllowed UpgradeRequired Unauthorized Forbidden OriginRefused
  SilentConnection SlowHead NotHttp TooManyGuesses HandshakeFailed TlsRequired TlsNotServed
  HeadTooLarge WebSocketProtocol TicketSpent InvalidTopic
`;

/** Refusals after which the same request may be sent again later. */
export const PASSING = `
  TooMany StorageFull StorageFailed StorageBusy ShareTaken TooManyConnections SlowBody Crowded
  TooFast RepliesUnread
`;

/** What ends a connection, and not the next one. */
export const RECONNECTING = `
  Draining BodyLost
`;
