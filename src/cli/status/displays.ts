import type { ApplianceResponse, StatusResponse } from '../../control/messages.ts';
import type { Notice } from '../../core/reports/notice.ts';
import { systemClock } from '../../system/clock.ts';
import { print, printable, printJson, printStderr } from '../terminal/output.ts';
import { noticeLine } from './text.ts';

/** What a watched hub is shown on. */
export interface StatusDisplay {
  /** Comes once a second. */
  show(status: StatusResponse): void;
  /** The hub does not answer; it is looked for once a second. */
  hubUnavailable(): void;
}

/** What passes with time alone is no change. */
const VOLATILE_MEMBERS: readonly string[] = ['expires_in', 'until', 'refresh_in', 'uptime', 'registration_open_for'];

const HUB_UNAVAILABLE = 'the hub is away, trying again';

/** How the hub stands as JSON, one object a line whenever it has changed. */
export class JsonStatusDisplay implements StatusDisplay {
  #lastStatus = '';
  #isHubUnavailable = false;

  show(status: StatusResponse): void {
    this.#isHubUnavailable = false;
    const lasting = JSON.stringify(status, (key, value: unknown) => (VOLATILE_MEMBERS.includes(key) ? null : value));
    if (lasting === this.#lastStatus) return;
    this.#lastStatus = lasting;
    printJson(status);
  }

  hubUnavailable(): void {
    if (!this.#isHubUnavailable) printStderr(HUB_UNAVAILABLE);
    this.#isHubUnavailable = true;
  }
}

/** A line with its time for whatever has changed, for logs and terminals on which nothing can be written over. */
export class LineStatusDisplay implements StatusDisplay {
  #appliances = new Map<string, string>();
  #notices = new Map<string, Notice>();
  #isHubUnavailable = false;

  show({ hub, appliances, notices }: StatusResponse): void {
    if (this.#isHubUnavailable) printTimestamped(`the hub is back: ${printable(hub.name)}`);
    this.#isHubUnavailable = false;
    const standing = new Map(appliances.map((appliance) => [appliance.name, applianceLine(appliance)]));
    for (const [name, text] of standing) if (text !== this.#appliances.get(name)) printTimestamped(`${name} ${text}`);
    for (const name of this.#appliances.keys()) if (!standing.has(name)) printTimestamped(`${name} was removed`);
    this.#appliances = standing;
    const told = new Map(notices.map((one) => [`${one.code} ${one.appliance}`, one]));
    for (const [key, one] of told) if (!this.#notices.has(key)) printTimestamped(noticeLine(one));
    for (const [key, { message }] of this.#notices)
      if (!told.has(key)) printTimestamped(`resolved: ${printable(message)}`);
    this.#notices = told;
  }

  hubUnavailable(): void {
    if (!this.#isHubUnavailable) printTimestamped(HUB_UNAVAILABLE);
    this.#isHubUnavailable = true;
  }
}

function applianceLine({
  state,
  scope,
  last_refresh,
  problem,
  authorize_url,
  waiting_for_approval: waiting,
}: ApplianceResponse): string {
  const parts = [waiting === undefined ? state : approvalText(waiting)];
  if (scope !== null) parts.push(`scope ${printable(scope)}`);
  if (last_refresh !== null) parts.push(`refreshed ${last_refresh}`);
  if (problem !== null) parts.push(printable(problem.message));
  if (authorize_url !== undefined) parts.push(`log in at ${printable(authorize_url)}`);
  return parts.join(', ');
}

function approvalText({ comparison_code, address }: NonNullable<ApplianceResponse['waiting_for_approval']>): string {
  const from = address === null ? '' : `, asked from ${printable(address)}`;
  return `waits for approval, code ${printable(comparison_code)}${from}`;
}

function printTimestamped(text: string): void {
  print(`${new Date(systemClock('').now().wall).toISOString()} ${text}`);
}
