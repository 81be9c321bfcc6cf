import type {
  ApplianceResponse,
  ConditionResponse,
  ConnectionResponse,
  StatusResponse,
} from '../../control/messages.ts';
import { STATUS_FIELDS } from '../../core/administration.ts';
import { isOfAppliance } from '../../core/health/condition.ts';
import type { Notice } from '../../core/health/notice.ts';
import { isVolatile } from '../../core/status-field.ts';
import { systemClock } from '../../system/clock.ts';
import { print, printable, printJson, printStderr } from '../terminal/output.ts';
import { loginInstruction, noticeLine } from './lines.ts';

/** Shows the status of a watched hub. */
export interface StatusDisplay {
  /** Called once a second. */
  show(status: StatusResponse): void;
  /** Called once a second while the hub does not respond. */
  hubUnavailable(): void;
}

/** Members that change with time alone, or with each token; they do not count as a change. */
const VOLATILE_MEMBERS: readonly string[] = [
  ...Object.values(STATUS_FIELDS).flatMap((field) => (isVolatile(field) ? field.member : [])),
  ...['until', 'registration_open_for', 'tokens', 'last_seen', 'count'],
];

/** The line that shows that the hub does not respond. */
export const HUB_UNAVAILABLE = 'the hub does not respond, trying again';

/** Prints the status as JSON, one object per line whenever it has changed. */
export class JsonStatusDisplay implements StatusDisplay {
  #lastStatus = '';
  #isHubUnavailable = false;

  show(status: StatusResponse): void {
    this.#isHubUnavailable = false;
    const stable = JSON.stringify(status, (key, value: unknown) => (VOLATILE_MEMBERS.includes(key) ? null : value));
    if (stable === this.#lastStatus) return;
    this.#lastStatus = stable;
    printJson(status);
  }

  hubUnavailable(): void {
    if (!this.#isHubUnavailable) printStderr(HUB_UNAVAILABLE);
    this.#isHubUnavailable = true;
  }
}

/** Prints a line with a timestamp for each change, for logs and terminals that cannot be redrawn. */
export class LineStatusDisplay implements StatusDisplay {
  /** The text of each appliance and of each shared connection, by what the line calls it. */
  #lines = new Map<string, string>();
  #notices = new Map<string, Notice>();
  #isHubUnavailable = false;

  show({ hub, appliances, connections, conditions, notices }: StatusResponse): void {
    if (this.#isHubUnavailable) printTimestamped(`the hub is back: ${printable(hub.name)}`);
    this.#isHubUnavailable = false;
    const shared = connections.filter(({ own }) => own !== true);
    const sharedNames = new Set(shared.map(({ name }) => name));
    const current = new Map([
      ...shared.map((connection) => [`the connection ${connection.name}`, loginText(connection)] as const),
      ...appliances.map((appliance) => [appliance.name, applianceText(appliance, sharedNames, conditions)] as const),
    ]);
    for (const [name, text] of current) if (text !== this.#lines.get(name)) printTimestamped(`${name} ${text}`);
    for (const name of this.#lines.keys()) if (!current.has(name)) printTimestamped(`${name} was removed`);
    this.#lines = current;
    const currentNotices = new Map(
      notices.map((notice) => [`${notice.code} ${notice.connection} ${notice.appliance}`, notice]),
    );
    for (const [key, notice] of currentNotices) if (!this.#notices.has(key)) printTimestamped(noticeLine(notice));
    for (const [key, { message }] of this.#notices)
      if (!currentNotices.has(key)) printTimestamped(`resolved: ${printable(message)}`);
    this.#notices = currentNotices;
  }

  hubUnavailable(): void {
    if (!this.#isHubUnavailable) printTimestamped(HUB_UNAVAILABLE);
    this.#isHubUnavailable = true;
  }
}

/** @param shared the names of the shared connections, which have lines of their own */
function applianceText(
  appliance: ApplianceResponse,
  shared: ReadonlySet<string>,
  conditions: readonly ConditionResponse[],
): string {
  const { name, connection, waiting_for_approval: waiting } = appliance;
  if (waiting !== undefined) return loginText(appliance, approvalText(waiting));
  const own = conditions.filter((one) => one.appliance === name && isOfAppliance(one));
  const login = shared.has(connection) ? `uses the connection ${connection}` : loginText(appliance);
  return [login, ...own.map(({ message }) => printable(message))].join(', ');
}

function loginText(
  { state, scope, last_refresh, problem, authorize_url, user_code }: ApplianceResponse | ConnectionResponse,
  stateText: string = state,
): string {
  const parts = [stateText];
  if (scope !== null) parts.push(`scope ${printable(scope)}`);
  if (last_refresh !== null) parts.push(`refreshed ${last_refresh}`);
  if (problem !== null) parts.push(printable(problem.message));
  if (authorize_url !== undefined) parts.push(loginInstruction(authorize_url, user_code, state));
  return parts.join(', ');
}

function approvalText({ comparison_code, address }: NonNullable<ApplianceResponse['waiting_for_approval']>): string {
  return `waits for approval, asked from ${printable(address)}; approve it only if it shows the code ${printable(comparison_code)}`;
}

function printTimestamped(text: string): void {
  print(`${new Date(systemClock('').now().wall).toISOString()} ${text}`);
}
