export * from './credit.ts';
export * from './deadline.ts';
export * from './digest.ts';
export * from './framed-channel.ts';
export { readEvents, type ServerEvent } from './http-body.ts';
export {
  createHttpClient,
  errorOfBody,
  type HttpClient,
  type HttpClientOptions,
  type HttpReply,
  type HttpRequest,
} from './http-client.ts';
export {
  baseUrlOf,
  createHttpForwarder,
  type ForwarderOptions,
  type ForwardReply,
  type ForwardRequest,
  type HttpForwarder,
} from './http-forwarder.ts';
export { HTTP_SERVER_LIMITS, type HttpServerLimits } from './http-limits.ts';
export { type ListenAddress, loopbackHosts } from './http-listener.ts';
export { RETRY_POLICY, type RetryPolicy } from './http-retry.ts';
export * from './http-routes.ts';
export { createHttpServer, type HttpServer, type HttpServerOptions } from './http-server.ts';
export * from './route-client.ts';
export { newStreamId, newTicketClaims, signTicket, type TicketRequest } from './ticket.ts';
export * from './ticket-verifier.ts';
export { namesOfCertificate, type TlsFiles } from './tls-files.ts';
export { REQUEST_ID_HEADER, TRACEPARENT_HEADER } from './trace.ts';
export { connectUnix, SOCKET_PATH_BYTES_MAX } from './unix-socket.ts';
export {
  joinConnections,
  type OpenedUpgrade,
  openUpgrade,
  type UpgradeRequest,
} from './upgrade-forwarder.ts';
export * from './websocket-channel.ts';
export { connectWebSocket, type WebSocketConnectOptions } from './websocket-client.ts';
export * from './websocket-codes.ts';
