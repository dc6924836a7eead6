export {
  createWatcher,
  type EdgeView,
  type StateReader,
  type Watcher,
  type WatcherOptions,
} from './watcher.ts';
