import { join } from 'node:path';
import { scaleDeadline } from '../../support/deadlines.ts';
import { rememberSecrets } from '../../support/logs.ts';
import type { Host, Process } from '../../support/netns.ts';
import type { AskedHub, LoadAppliance, LoadCommand, LoadCounts, LoadReport } from './load-messages.ts';
import type { FirstHandOut } from './send-audit.ts';

const PROGRAM = join(import.meta.dirname, 'appliance-load.ts');

/** A token that the portal rejected, or a time without one. */
export type RejectedToken = Extract<LoadReport, { event: 'rejected' }>;
export type TimeWithoutToken = Extract<LoadReport, { event: 'without_token' }>;

/** The appliances of a site, in a process of their own on their own host, and what they report. */
export class Appliances {
  readonly handOuts: FirstHandOut[] = [];
  readonly rejected: RejectedToken[] = [];
  readonly withoutToken: TimeWithoutToken[] = [];
  readonly #process: Process;
  readonly #replies = new Map<number, PromiseWithResolvers<unknown>>();
  #commands = 0;
  #rest = '';
  #ended: Error | null = null;

  private constructor(process: Process) {
    this.#process = process;
    process.child.once('close', () => {
      this.#ended = new Error(`the process of the appliances has ended: ${process.output.slice(-500)}`);
      for (const reply of this.#replies.values()) reply.reject(this.#ended);
    });
    process.child.stdout?.setEncoding('utf8').on('data', (text: string) => this.#read(text));
  }

  /** @param portal the emulator */
  static async start(host: Host, portal: { readonly baseUrl: string; readonly ca: string }): Promise<Appliances> {
    const ca = Buffer.from(portal.ca).toString('base64');
    const running = host.spawn(process.execPath, [PROGRAM, portal.baseUrl, ca]);
    await running.line((line) => line.includes('"ready"') || undefined, scaleDeadline(10_000));
    return new Appliances(running);
  }

  /** Starts the load. @param every how often each appliance asks all hubs, in ms */
  async load(
    appliances: readonly LoadAppliance[],
    hubs: readonly AskedHub[],
    ca: string,
    every: number,
  ): Promise<void> {
    await this.#send({ do: 'start', appliances, hubs, ca, every });
  }

  /** From now on the appliances ask these hubs. */
  async ask(hubs: readonly AskedHub[]): Promise<void> {
    await this.#send({ do: 'hubs', hubs });
  }

  /** Ends the load. @returns what it has seen */
  async stop(): Promise<LoadCounts> {
    return (await this.#send({ do: 'stop' })) as LoadCounts;
  }

  /** Sends a request to the emulator's API or endpoints. */
  async askPortal<Answer>(method: string, path: string, body?: unknown): Promise<Answer> {
    const result = await this.#send({ do: 'ask_portal', method, path, ...(body !== undefined && { body }) });
    const { status, answer } = result as { status: number; answer: Answer };
    if (status >= 300) throw new Error(`${method} ${path} got HTTP ${status}`);
    return answer;
  }

  /** Logs in through a link as a browser does. @returns the last page */
  async logIn(url: string, user: string, password: string): Promise<string> {
    rememberSecrets([password]);
    return (await this.#send({ do: 'log_in', url, user, password })) as string;
  }

  /** Another program with this client logs in. @returns its refresh token */
  async logInElsewhere(
    user: string,
    client: { readonly frontendUrl: string; readonly clientId: string; readonly clientSecret: string },
  ): Promise<string> {
    return (await this.#send({ do: 'log_in_elsewhere', user, ...client })) as string;
  }

  async #send(command: LoadCommand): Promise<unknown> {
    if (this.#ended !== null) throw this.#ended;
    this.#commands += 1;
    const reply = Promise.withResolvers<unknown>();
    this.#replies.set(this.#commands, reply);
    this.#process.child.stdin?.write(`${JSON.stringify({ id: this.#commands, command })}\n`);
    return reply.promise;
  }

  #read(text: string): void {
    const lines = (this.#rest + text).split('\n');
    this.#rest = lines.pop() ?? '';
    for (const line of lines) {
      const report = JSON.parse(line) as LoadReport;
      if (report.event === 'handed_out') this.handOuts.push(report);
      else if (report.event === 'rejected') this.rejected.push(report);
      else if (report.event === 'without_token') this.withoutToken.push(report);
      else if (report.event === 'reply') {
        const reply = this.#replies.get(report.id);
        this.#replies.delete(report.id);
        if (report.error === null) reply?.resolve(report.result);
        else reply?.reject(new Error(`the appliances: ${report.error}`));
      }
    }
  }
}
