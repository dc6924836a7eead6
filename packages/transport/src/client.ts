/** What a client needs, without the server: it starts faster and takes less memory. */
export { createHttpClient, type HttpClient, type HttpClientOptions } from './http-client.ts';
export type { RetryPolicy } from './http-retry.ts';
export {
  type BytesReply,
  type CallInput,
  type CallOptions,
  type CallReply,
  callRoute,
} from './route-client.ts';
export { REQUEST_ID_HEADER } from './trace.ts';
export type { WebSocketChannel } from './websocket-channel.ts';
export { connectWebSocket, type WebSocketConnectOptions } from './websocket-client.ts';
