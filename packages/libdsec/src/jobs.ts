import { type Job, type JobResult, ROUTES } from '@dsec/protocol';
import { itemsOf, type ListOptions } from './pages.ts';
import type { CallSettings, Server } from './server.ts';

/** Sandboxes that carry one job label, counted and steered together. */
export class Jobs {
  readonly #server: Server;

  constructor(server: Server) {
    this.#server = server;
  }

  list(options: ListOptions = {}): AsyncGenerator<Job> {
    const { signal } = options;
    return itemsOf(
      options,
      (query) => this.#server.call(ROUTES.listJobs, { query }, { signal }),
      (page) => page.jobs,
    );
  }

  get(jobId: string, options: CallSettings = {}): Promise<Job> {
    return this.#server.call(ROUTES.getJob, { params: { jobId } }, options);
  }

  stop(jobId: string, options: CallSettings = {}): Promise<JobResult> {
    return this.#server.call(ROUTES.stopJob, { params: { jobId } }, options);
  }

  pause(jobId: string, options: CallSettings = {}): Promise<JobResult> {
    return this.#server.call(ROUTES.pauseJob, { params: { jobId } }, options);
  }

  resume(jobId: string, options: CallSettings = {}): Promise<JobResult> {
    return this.#server.call(ROUTES.resumeJob, { params: { jobId } }, options);
  }
}
