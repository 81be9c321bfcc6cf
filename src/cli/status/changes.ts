import type { ApplianceAnswer, StatusAnswer } from '../../control/messages.ts';
import type { Notice } from '../../core/reports/notice.ts';
import { systemClock } from '../../system/clock.ts';
import { notice, print, printable, printJson } from '../terminal/output.ts';
import { noticeLine } from './text.ts';

/** What a watched hub is shown on. */
export interface StatusDisplay {
  /** Comes once a second. */
  show(status: StatusAnswer): void;
  /** The hub does not answer; it is looked for once a second. */
  away(): void;
}

/** What passes with time alone is no change. */
const PASSING: readonly string[] = ['expires_in', 'until', 'refresh_in', 'uptime', 'registration_open_for'];

const AWAY = 'the hub is away, trying again';

/** How the hub stands as JSON, one object a line whenever it has changed. */
export class JsonChanges implements StatusDisplay {
  #last = '';
  #isAway = false;

  show(status: StatusAnswer): void {
    this.#isAway = false;
    const lasting = JSON.stringify(status, (key, value: unknown) => (PASSING.includes(key) ? null : value));
    if (lasting === this.#last) return;
    this.#last = lasting;
    printJson(status);
  }

  away(): void {
    if (!this.#isAway) notice(AWAY);
    this.#isAway = true;
  }
}

/** A line with its time for whatever has changed, for logs and terminals on which nothing can be written over. */
export class ChangeLines implements StatusDisplay {
  #appliances = new Map<string, string>();
  #notices = new Map<string, Notice>();
  #isAway = false;

  show({ hub, appliances, notices }: StatusAnswer): void {
    if (this.#isAway) say(`the hub is back: ${printable(hub.name)}`);
    this.#isAway = false;
    const standing = new Map(appliances.map((appliance) => [appliance.name, standingOf(appliance)]));
    for (const [name, text] of standing) if (text !== this.#appliances.get(name)) say(`${name} ${text}`);
    for (const name of this.#appliances.keys()) if (!standing.has(name)) say(`${name} was removed`);
    this.#appliances = standing;
    const told = new Map(notices.map((one) => [`${one.code} ${one.appliance}`, one]));
    for (const [key, one] of told) if (!this.#notices.has(key)) say(noticeLine(one));
    for (const [key, { message }] of this.#notices) if (!told.has(key)) say(`resolved: ${printable(message)}`);
    this.#notices = told;
  }

  away(): void {
    if (!this.#isAway) say(AWAY);
    this.#isAway = true;
  }
}

function standingOf({
  state,
  scope,
  last_refresh,
  problem,
  authorize_url,
  waiting_for_approval: waiting,
}: ApplianceAnswer): string {
  const parts = [waiting === undefined ? state : waits(waiting)];
  if (scope !== null) parts.push(`scope ${printable(scope)}`);
  if (last_refresh !== null) parts.push(`refreshed ${last_refresh}`);
  if (problem !== null) parts.push(printable(problem.message));
  if (authorize_url !== undefined) parts.push(`log in at ${printable(authorize_url)}`);
  return parts.join(', ');
}

function waits({ comparison_code, address }: NonNullable<ApplianceAnswer['waiting_for_approval']>): string {
  const from = address === null ? '' : `, asked from ${printable(address)}`;
  return `waits for approval, code ${printable(comparison_code)}${from}`;
}

function say(text: string): void {
  print(`${new Date(systemClock('').now().wall).toISOString()} ${text}`);
}
