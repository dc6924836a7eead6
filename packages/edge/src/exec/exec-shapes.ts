/** The shapes of the routes of commands and sessions, by their names in the route table. */
import type { BodyOf, QueryOf, ReplyOf, RouteOf } from '@dsec/protocol';

export type StartedExec = ReplyOf<RouteOf<'startExec'>>;
export type ExecPage = ReplyOf<RouteOf<'listExecs'>>;
export type ExecQuery = QueryOf<RouteOf<'getExec'>>;
export type OutputQuery = QueryOf<RouteOf<'readExecOutput'>>;
export type StdinQuery = QueryOf<RouteOf<'writeExecStdin'>>;
export type StdinAccepted = ReplyOf<RouteOf<'writeExecStdin'>>;
export type SignalRequest = BodyOf<RouteOf<'signalExec'>>;
export type TimeoutRequest = BodyOf<RouteOf<'setExecTimeout'>>;
export type AttachQuery = QueryOf<RouteOf<'attachExec'>>;
export type SessionSpec = BodyOf<RouteOf<'openSession'>>;
export type SessionPage = ReplyOf<RouteOf<'listSessions'>>;
