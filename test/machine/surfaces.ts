// What every surface of an installed hub says at one moment, and whether two of them disagree.
import { appendFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import * as v from 'valibot';
import { type StatusResponse, statusResponseSchema } from '../../src/control/messages.ts';
import type { Condition } from '../../src/core/health/condition.ts';
import { statusLine } from '../../src/daemon/status-line.ts';
import type { NamedCheckResult } from '../../src/doctor/check-result.ts';
import { displaySeverity, hubHealth } from '../../src/page/overview/health.ts';
import { en } from '../../src/page/texts/en.ts';
import { scaleDeadline } from '../support/deadlines.ts';
import { eventually } from '../support/hub-process.ts';
import { logFile, rememberSecrets } from '../support/logs.ts';
import type { InstalledHub } from './installed-hub.ts';

const SCRIPT = '/root/look';
/** Asks all of them at the same time, and the hub's own judgement before and after. */
const LOOK = `#!/bin/sh
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
/** How long systemd's line may be behind: it follows events at once, and a busy machine a little later. In ms. */
const LINE_DELAY = 5000;

/** What `status --json` says. */
type Status = Omit<StatusResponse, 'conditions'> & { readonly conditions: readonly Condition[] };

/** What all surfaces said at a moment. */
export interface SurfaceSnapshot {
  /** When it was asked, in ms since the first one. */
  readonly at: number;
  /** The hub's own judgement; null where there was none, or where it changed while the surfaces were asked. */
  readonly status: Status | null;
  /** What it was about to be, while it changed. */
  readonly later: Status | null;
  readonly said: Readonly<Record<string, string>>;
  /** What the doctor finds amiss beside the hub's conditions. */
  readonly found: readonly NamedCheckResult[];
  readonly disagreements: readonly string[];
}

/** Looks at all surfaces of an installed hub. */
export class Surfaces {
  readonly #hub: InstalledHub;
  readonly #begun = performance.now();
  readonly #lines: { readonly at: number; readonly line: string }[] = [];

  private constructor(hub: InstalledHub) {
    this.#hub = hub;
  }

  static async open(hub: InstalledHub): Promise<Surfaces> {
    await hub.machine.write(SCRIPT, LOOK, '755');
    const surfaces = new Surfaces(hub);
    await surfaces.signIn();
    return surfaces;
  }

  /** The page is behind the setup code; a restored store knows no browser. */
  async signIn(): Promise<void> {
    const code = (await this.#hub.latchkey('setup-code')).stdout.trim();
    rememberSecrets([code]);
    const own = "-H 'origin: https://127.0.0.1:8443' -H 'sec-fetch-site: same-origin'";
    await this.#hub.machine.sh(
      `curl -sSk --fail -c /root/jar ${own} --data-urlencode code@- https://127.0.0.1:8443/sign-in`,
      { input: code },
    );
    // What came before the first look, such as a start, may not be in systemd's line yet.
    await eventually(async () => (await this.takeSnapshot()).disagreements.length === 0);
  }

  /**
   * Looks again and again while something happens, and for ten seconds after that.
   * @param isOver on a slow machine it goes on until this is so of the last look
   */
  async during(
    what: string,
    happens: () => Promise<unknown>,
    isOver: (last: SurfaceSnapshot) => boolean = () => true,
  ): Promise<SurfaceSnapshot[]> {
    const looks: SurfaceSnapshot[] = [];
    let ended = Number.POSITIVE_INFINITY;
    const all = happens().finally(() => {
      ended = performance.now();
    });
    all.catch(() => undefined);
    const isSeen = () => {
      const [last] = looks.slice(-1);
      return last?.status != null && isOver(last);
    };
    while (performance.now() < ended + 10_000 || (!isSeen() && performance.now() < ended + scaleDeadline(10_000))) {
      looks.push(await this.takeSnapshot());
      await sleep(1500);
    }
    await appendFile(logFile('surfaces'), [`# ${what}`, ...looks.map(inOneLine), ''].join('\n'), { mode: 0o600 });
    await all;
    return looks;
  }

  async takeSnapshot(): Promise<SurfaceSnapshot> {
    const at = performance.now() - this.#begun;
    const { stdout } = await this.#hub.machine.run(SCRIPT);
    const said: Record<string, string> = {};
    for (const part of stdout.split('\n<<<').slice(1)) {
      const [name = '', ...text] = part.split('>>>\n');
      said[name] = text.join('>>>\n');
    }
    const [before, later] = [statusOf(said['before']), statusOf(said['after'])];
    for (const one of [before, later]) if (one !== null) this.#lines.push({ at, line: statusLine(one) });
    const isSteady = before !== null && later !== null && judgementOf(before) === judgementOf(later);
    // One of before a restart may judge as the one after it, and there was none between them.
    const steady = isSteady && later.hub.uptime >= before.hub.uptime ? later : null;
    const checks = findings(said['doctor']);
    const found = checks.filter(({ result, detail }) => {
      return result !== 'ok' && (later ?? before)?.conditions.every(({ what_to_do }) => !detail.includes(what_to_do));
    });
    const disagreements = steady === null ? [] : this.#compare(at, steady, said, checks);
    return { at, status: steady, later, said, found, disagreements };
  }

  #compare(at: number, status: Status, said: Readonly<Record<string, string>>, checks: NamedCheckResult[]): string[] {
    const { hub, appliances, conditions, notices } = status;
    const { text = '', exit = '', jsonExit = '', page = '', metrics = '', line = '' } = said;
    const wrong: string[] = [];
    const expect = (is: boolean, what: string) => void (is || wrong.push(what));
    const exitStatus = conditions.some(({ severity }) => severity === 'error') ? '3' : '0';
    expect(exit.trim() === exitStatus && jsonExit.trim() === exitStatus, `exit status ${exit.trim()}`);
    const json = statusOf(said['json']);
    expect(json !== null && judgementOf(json) === judgementOf(status), 'status --json judges otherwise');
    const ofHub = conditions.filter(({ appliance, code }) => appliance === null && code !== 'wrong_setup_codes');
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
    for (const { code, severity, appliance, what_to_do } of conditions) {
      const alike = conditions.filter((one) => one.what_to_do === what_to_do).length;
      const times = text.split(`${what_to_do}.`).length - 1;
      expect(code === 'login_open' || times === alike, `status says ${times} times what to do: ${code}`);
      const isFound = checks.some(({ result, detail }) => result === RESULTS[severity] && detail.endsWith(what_to_do));
      expect(isFound, `the doctor does not find ${code}`);
      const labels = `code="${code}",severity="${severity}"${appliance === null ? '' : `,appliance="${appliance}"`}`;
      expect(metrics.includes(`latchkey_condition{${labels}} 1\n`), `no metric of ${code}`);
    }
    expect(count(metrics, 'latchkey_condition') === conditions.length, 'more conditions in the metrics');
    expect(count(metrics, 'latchkey_notices') === notices.length, 'other notices in the metrics');
    for (const { code, severity, appliance, what_to_do } of notices) {
      const isOne = conditions.some(
        (one) => one.severity === severity && one.appliance === appliance && one.what_to_do === what_to_do,
      );
      expect(isOne, `a notice of nothing: ${code}`);
    }
    expect(notices.some(({ severity }) => severity === 'error') === (exitStatus === '3'), 'notices of errors');
    const lately = this.#lines.filter((one) => at - one.at < LINE_DELAY).map((one) => one.line);
    expect(lately.includes(line.trim()), `systemd's line is ${line.trim()}`);
    return wrong;
  }
}

const RESULTS = { error: 'fail', warning: 'warn', info: 'ok' } as const;

function statusOf(text = ''): Status | null {
  return text.trim() === '' ? null : (v.parse(statusResponseSchema, JSON.parse(text)) as Status);
}

function findings(text = ''): NamedCheckResult[] {
  return text.trim() === '' ? [] : (JSON.parse(text) as { checks: NamedCheckResult[] }).checks;
}

function judgementOf({ conditions, notices, appliances }: Status): string {
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

function inOneLine({ at, status, later, said, found, disagreements }: SurfaceSnapshot): string {
  const shown = status ?? later;
  const [, headline] = /<h1 id="health">([^<]*)/.exec(said['page'] ?? '') ?? [];
  const [, row] = /<p class="state .*?<span>([^<]*)</.exec(said['page'] ?? '') ?? [];
  return JSON.stringify({
    at: Math.round(at / 100) / 10,
    steady: status !== null,
    conditions: shown?.conditions.map(({ code, severity, message }) => `${severity} ${code}: ${message}`),
    exit: said['exit']?.trim(),
    ...{ headline, row, line: said['line']?.trim() },
    notices: shown?.notices.map(({ code }) => code),
    doctor: found.map(({ name, result, detail }) => `${result} ${name} ${detail}`),
    ...(disagreements.length > 0 && { disagreements }),
  });
}
