import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ApplianceResponse, CredentialsResponse } from '../../src/control/messages.ts';
import type { Emulator, EmulatorOptions } from '../../src/emulator/index.ts';
import { whoami } from '../reliability/load.ts';
import { eventually, HubProcess, type TokenReply } from '../support/hub-process.ts';
import { startPortal } from '../support/portal.ts';
import type { InvariantChecks } from './experiment.ts';
import { FakeMachineClocks } from './fake-machine-clocks.ts';

/** A hub with fake clocks, and its portal with the right time. */
export class ClockHarness implements AsyncDisposable {
  readonly machine: FakeMachineClocks;
  readonly emulator: Emulator;
  readonly hub: HubProcess;

  private constructor(machine: FakeMachineClocks, emulator: Emulator, hub: HubProcess) {
    this.machine = machine;
    this.emulator = emulator;
    this.hub = hub;
  }

  static async start(options: EmulatorOptions): Promise<ClockHarness> {
    const machine = new FakeMachineClocks();
    const emulator = await startPortal({ refreshGraceTime: 60, ...options });
    const trust = emulator.ca === null ? {} : { portal: 'ca_file = "portal-ca.pem"' };
    const hub = await HubProcess.prepare({ emulator, within: machine.within, ...trust });
    if (emulator.ca !== null) await writeFile(join(hub.directory, 'portal-ca.pem'), emulator.ca);
    await hub.launch();
    return new ClockHarness(machine, emulator, hub);
  }

  /** Reboots the machine. @param ahead the offset of its wall clock from the right time, in ms */
  async boot(ahead: number): Promise<void> {
    this.machine.reboot();
    this.machine.setOffset(ahead);
    await this.hub.launch();
  }

  /** The portal's status for an issued token: 200 or 401. */
  verdict(reply: TokenReply): Promise<number> {
    return whoami(this.emulator, reply.body['access_token']);
  }

  /** Requests a token until it is issued. @returns the response, and after how many seconds it came */
  async served(appliance: CredentialsResponse, seconds: number): Promise<{ reply: TokenReply; after: number }> {
    const began = performance.now();
    const reply = await eventually(async () => {
      const response = await this.hub.requestToken(appliance);
      return response.status === 200 && response;
    }, seconds);
    return { reply, after: Math.round((performance.now() - began) / 100) / 10 };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.hub[Symbol.asyncDispose]();
    await this.emulator[Symbol.asyncDispose]();
    this.machine[Symbol.dispose]();
  }
}

/** Whether two responses contain the same token. */
export function isSameToken(one: TokenReply, other: TokenReply): boolean {
  return one.status === 200 && one.body['access_token'] === other.body['access_token'];
}

/** Expects a 503 with `temporarily_unavailable` and `Retry-After`. */
export function expectUnavailable(
  { status, headers, body }: TokenReply,
  when: string,
  promises: InvariantChecks,
): void {
  const unavailable =
    status === 503 && body['error'] === 'temporarily_unavailable' && Number(headers['retry-after']) >= 1;
  promises.expect(unavailable, `${when}: the hub responded ${status} ${body['error']}`);
}

/** Expects the problem `clock_unknown`. @param parts texts that its message must contain */
export function expectClockUnknown(
  { state, problem }: ApplianceResponse,
  parts: readonly string[],
  promises: InvariantChecks,
): void {
  const reported = state === 'retrying' && problem?.code === 'clock_unknown';
  const all = reported && parts.every((part) => problem.message.includes(part));
  promises.expect(all, `status reports ${state}, ${problem?.code}: ${problem?.message}`);
}

/** Expects that an appliance becomes active without a problem. */
export async function expectActive(hub: HubProcess, name: string, promises: InvariantChecks): Promise<void> {
  const status = await hub
    .until(name, ({ state, problem }) => state === 'active' && problem === null, 10)
    .catch(() => null);
  promises.expect(status !== null, `${name} did not become active again`);
}
