export * from './attach.ts';
export * from './audit.ts';
export { type ByteText, bytesOfPath, bytesOfText, textOfBytes } from './byte-text.ts';
export * from './error-body.ts';
export * from './event.ts';
export * from './exec.ts';
export * from './file.ts';
export * from './grade.ts';
export * from './job.ts';
export * from './key.ts';
export * from './layer.ts';
export * from './list-place.ts';
export * from './network-rule.ts';
export * from './node.ts';
export * from './openapi.ts';
export * from './policy.ts';
export {
  type BodyOf,
  HEADERS,
  type HeaderName,
  IDEMPOTENCY_HEADER,
  isStreamRoute,
  JSON_BODY_BYTES_MAX,
  type ParamsOf,
  type QueryOf,
  type ReplyOf,
  type Route,
  type RouteBody,
  type RouteEffect,
  type RouteHome,
  type RouteReply,
  SANDBOX_HEADER,
  STREAM_HEADER,
  TICKET_HEADER,
} from './route.ts';
export * from './route-target.ts';
export * from './routes.ts';
export * from './sandbox.ts';
export * from './snapshot.ts';
