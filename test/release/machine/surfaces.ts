// What every surface of an installed hub shows at one moment, and whether two of them disagree.
import { setTimeout as sleep } from 'node:timers/promises';
import * as v from 'valibot';
import { type StatusResponse, statusResponseSchema } from '../../../src/control/messages.ts';
import type { Condition } from '../../../src/core/health/condition.ts';
import { statusLine } from '../../../src/daemon/status-line.ts';
import type { NamedCheckResult } from '../../../src/doctor/check-result.ts';
import { displaySeverity, hubHealth } from '../../../src/page/overview/health.ts';
import { en } from '../../../src/page/texts/en.ts';
import { scaleDeadline } from '../../support/deadlines.ts';
import { eventually } from '../../support/hub-process.ts';
import { rememberSecrets } from '../../support/logs.ts';
import { IS_LONG_FORM } from '../../support/long.ts';
import type { InstalledHub } from './installed-hub.ts';

const SCRIPT = '/root/look';
/** Reads all surfaces at the same time, and the hub's own status before and after. */
const SCRIPT_TEXT = `#!/bin/sh
cd "$(mktemp -d)"
judgement() { curl -s --max-time 5 --unix-socket /run/latchkey/control.sock http://localhost/v1/status; }
judgement > before
(latchkey status > text 2>&1; echo $? > exit) &
(latchkey status --json > json 2> /dev/null; echo $? > jsonExit) &
(latchkey doctor --json > doctor 2> /dev/null) &
curl -sk --max-time 5 --cookie /root/jar https://127.0.0.1:8443/ > page &
curl -s --max-time 5 http://127.0.0.1:9480/metrics > metrics &
systemctl show --value --property=StatusText latchkey > line
wait
judgement > after
for file in *; do printf '\\n<<<%s>>>\\n' "$file"; cat "$file"; done
`;
/** How long the surfaces are watched after something has happened, in ms. */
const WATCHED = IS_LONG_FORM ? 10_000 : 2000;
/**
 * How long systemd's status line may lag behind, in ms: it follows events at once, or a little later on a busy machine.
 */
const LINE_DELAY = 5000;

/** The output of `status --json`. */
type Status = Omit<StatusResponse, 'conditions'> & { readonly conditions: readonly Condition[] };

/** What all surfaces showed at one moment. */
export interface SurfaceSnapshot {
  /** When they were read, in ms since the first time. */
  readonly at: number;
  /** The hub's own status; null if there was none, or if it changed while the surfaces were read. */
  readonly status: Status | null;
  /** The doctor's findings that are not conditions of the hub. */
  readonly found: readonly NamedCheckResult[];
  readonly disagreements: readonly string[];
}

/** Reads all surfaces of an installed hub. */
export class Surfaces {
  readonly #hub: InstalledHub;
  readonly #begun = performance.now();
  readonly #lines: { readonly at: number; readonly line: string }[] = [];

  private constructor(hub: InstalledHub) {
    this.#hub = hub;
  }

  static async open(hub: InstalledHub): Promise<Surfaces> {
    await hub.machine.write(SCRIPT, SCRIPT_TEXT, '755');
    const surfaces = new Surfaces(hub);
    await surfaces.signIn();
    return surfaces;
  }

  /** The page requires the setup code; a restored store has no sessions of browsers. */
  async signIn(): Promise<void> {
    const code = (await this.#hub.latchkey('setup-code')).stdout.trim();
    rememberSecrets([code]);
    const own = "-H 'origin: https://127.0.0.1:8443' -H 'sec-fetch-site: same-origin'";
    await this.#hub.machine.sh(
      `curl -sSk --fail -c /root/jar ${own} --data-urlencode code@- https://127.0.0.1:8443/sign-in`,
      { input: code },
    );
    // systemd's status line may not show the latest event, such as a start, yet.
    await eventually(async () => (await this.takeSnapshot()).disagreements.length === 0);
  }

  /**
   * Takes snapshots while something happens, and for a while after that.
   * @param isOver on a slow machine it continues until this is true for the last snapshot
   */
  async during(
    happens: () => Promise<unknown>,
    isOver: (last: SurfaceSnapshot) => boolean,
  ): Promise<SurfaceSnapshot[]> {
    const snapshots: SurfaceSnapshot[] = [];
    let ended = Number.POSITIVE_INFINITY;
    const all = happens().finally(() => {
      ended = performance.now();
    });
    all.catch(() => undefined);
    const isSeen = () => {
      const [last] = snapshots.slice(-1);
      return last?.status != null && isOver(last);
    };
    while (performance.now() < ended + WATCHED || (!isSeen() && performance.now() < ended + scaleDeadline(10_000))) {
      snapshots.push(await this.takeSnapshot());
      await sleep(1000);
    }
    await all;
    return snapshots;
  }

  async takeSnapshot(): Promise<SurfaceSnapshot> {
    const at = performance.now() - this.#begun;
    const { stdout } = await this.#hub.machine.run(SCRIPT);
    const outputs: Record<string, string> = {};
    for (const part of stdout.split('\n<<<').slice(1)) {
      const [name = '', ...text] = part.split('>>>\n');
      outputs[name] = text.join('>>>\n');
    }
    const [before, later] = [statusOf(outputs['before']), statusOf(outputs['after'])];
    for (const one of [before, later]) if (one !== null) this.#lines.push({ at, line: statusLine(one) });
    const isSteady = before !== null && later !== null && healthOf(before) === healthOf(later);
    // A status from before a restart may equal the one after it, and between them there was none.
    const steady = isSteady && later.hub.uptime >= before.hub.uptime ? later : null;
    const checks = findings(outputs['doctor']);
    const found = checks.filter(({ result, detail }) => {
      return result !== 'ok' && (later ?? before)?.conditions.every(({ what_to_do }) => !detail.includes(what_to_do));
    });
    const disagreements = steady === null ? [] : this.#compare(at, steady, outputs, checks);
    return { at, status: steady, found, disagreements };
  }

  #compare(
    at: number,
    status: Status,
    outputs: Readonly<Record<string, string>>,
    checks: NamedCheckResult[],
  ): string[] {
    const { hub, appliances, conditions, notices } = status;
    const { text = '', exit = '', jsonExit = '', page = '', metrics = '', line = '' } = outputs;
    const disagreements: string[] = [];
    const expect = (is: boolean, what: string) => void (is || disagreements.push(what));
    const exitStatus = conditions.some(({ severity }) => severity === 'error') ? '3' : '0';
    expect(exit.trim() === exitStatus && jsonExit.trim() === exitStatus, `exit status ${exit.trim()}`);
    const json = statusOf(outputs['json']);
    expect(json !== null && healthOf(json) === healthOf(status), 'status --json judges otherwise');
    const ofHub = conditions.filter(({ connection, code }) => connection === null && code !== 'wrong_setup_codes');
    expect(codes(hub.problems ?? []) === codes(ofHub), `hub.problems are ${codes(hub.problems ?? [])}`);

    const health = hubHealth(conditions, appliances, en);
    expect(page.includes(`<h1 id="health">${health.headline.replaceAll("'", '&#39;')}</h1>`), 'headline');
    for (const { name } of appliances) {
      const own = conditions.filter(({ appliance }) => appliance === name);
      const [, icon] = new RegExp(`id="appliance-${name}"[\\s\\S]*?<p class="state (\\w+)"`).exec(page) ?? [];
      expect(icon === displaySeverity(own[0]), `the page's row of ${name} is ${icon}`);
      const results = checks.filter(({ name: check }) => check === `appliance.${name}`).map(({ result }) => result);
      const expected = own.length === 0 ? ['ok'] : own.map(({ severity }) => RESULTS[severity]);
      expect(results.join() === expected.join(), `the doctor says ${results} of ${name}`);
    }
    for (const { code, severity, connection, appliance, what_to_do } of conditions) {
      const sameAdvice = conditions.filter((one) => one.what_to_do === what_to_do).length;
      const times = text.split(`${what_to_do}.`).length - 1;
      expect(code === 'login_open' || times === sameAdvice, `status says ${times} times what to do: ${code}`);
      const isFound = checks.some(({ result, detail }) => result === RESULTS[severity] && detail.endsWith(what_to_do));
      expect(isFound, `the doctor does not find ${code}`);
      const subject = Object.entries({ connection, appliance }).filter(([, name]) => name !== null);
      const labels = [['code', code], ['severity', severity], ...subject].map(
        ([label, value]) => `${label}="${value}"`,
      );
      expect(metrics.includes(`latchkey_condition{${labels.join()}} 1\n`), `no metric of ${code}`);
    }
    expect(count(metrics, 'latchkey_condition') === conditions.length, 'more conditions in the metrics');
    expect(count(metrics, 'latchkey_notices') === notices.length, 'other notices in the metrics');
    for (const { code, severity, connection, what_to_do } of notices) {
      const isOne = conditions.some(
        (one) => one.severity === severity && one.connection === connection && one.what_to_do === what_to_do,
      );
      expect(isOne, `a notice of nothing: ${code}`);
    }
    expect(notices.some(({ severity }) => severity === 'error') === (exitStatus === '3'), 'notices of errors');
    // The previous snapshot's statuses count too: on a busy machine it may be older than the delay.
    const recentLines = this.#lines
      .filter((one, index) => at - one.at < LINE_DELAY || index >= this.#lines.length - 4)
      .map((one) => one.line);
    expect(recentLines.includes(line.trim()), `systemd's line is ${line.trim()}`);
    return disagreements;
  }
}

const RESULTS = { error: 'fail', warning: 'warn', info: 'ok' } as const;

function statusOf(text = ''): Status | null {
  return text.trim() === '' ? null : (v.parse(statusResponseSchema, JSON.parse(text)) as Status);
}

function findings(text = ''): NamedCheckResult[] {
  return text.trim() === '' ? [] : (JSON.parse(text) as { checks: NamedCheckResult[] }).checks;
}

function healthOf({ conditions, notices, appliances }: Status): string {
  const of = (list: readonly { readonly code: string; readonly appliance: string | null }[]) =>
    list.map(({ code, appliance }) => `${code} ${appliance}`);
  return JSON.stringify([of(conditions), of(notices), appliances.map(({ name, state }) => `${name} ${state}`)]);
}

function codes(list: readonly { readonly code: string }[]): string {
  return list
    .map(({ code }) => code)
    .sort()
    .join();
}

function count(metrics: string, family: string): number {
  return metrics.match(new RegExp(`^${family}\\{.* 1$`, 'gm'))?.length ?? 0;
}
