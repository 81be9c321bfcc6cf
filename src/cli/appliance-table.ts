import { styleText } from 'node:util';
import type { ApplianceState, ApplianceStatus } from '../core/administration.ts';
import { systemClock } from '../system/clock.ts';
import { ago, inTime } from './duration.ts';
import { print, printable } from './output.ts';
import { whatToDo } from './problem-advice.ts';
import { alignColumns } from './table.ts';

const COLOURS = {
  unpaired: 'gray',
  pairing: 'cyan',
  active: 'green',
  retrying: 'yellow',
  needs_pairing: 'red',
} as const satisfies Record<ApplianceState, string>;

const HEAD = ['APPLIANCE', 'STATE', 'SCOPE', 'TOKEN EXPIRES', 'NEXT REFRESH', 'LAST REFRESH', 'PORTAL'];

/** Prints how appliances stand: a table, and below it what needs a person. */
export function showAppliances(appliances: readonly ApplianceStatus[]): void {
  if (appliances.length === 0) {
    print('No appliances yet. Register one: latchkey appliance add NAME');
    return;
  }
  const now = systemClock('').now().wall;
  print(alignColumns([HEAD, ...appliances.map((appliance) => row(appliance, now))]));
  const remarks = appliances.flatMap((appliance) => remark(appliance, now));
  if (remarks.length > 0) print(`\n${remarks.join('\n')}`);
}

function row(appliance: ApplianceStatus, now: number): string[] {
  return [
    printable(appliance.name),
    stateCell(appliance),
    printable(appliance.scope ?? '–'),
    inTime(appliance.expires_in),
    inTime(appliance.refresh_in),
    ago(appliance.last_refresh, now),
    printable(appliance.portal),
  ];
}

/** One that waits for approval is `unpaired` by the contract; a person is told what it waits for. */
function stateCell({ state, waiting_for_approval: waiting }: ApplianceStatus): string {
  if (waiting !== undefined) return styleText('magenta', 'waits for approval', { stream: process.stdout });
  return styleText(COLOURS[state] ?? 'reset', state, { stream: process.stdout });
}

function remark(appliance: ApplianceStatus, now: number): string[] {
  const { name, state, problem, authorize_url, waiting_for_approval: waiting } = appliance;
  if (waiting !== undefined) {
    const software = waiting.software_id === null ? '' : `, says its software is ${printable(waiting.software_id)}`;
    return [
      `${name}: introduced itself ${ago(waiting.since, now)} as client_id ${printable(appliance.client_id)}${software}; if it is yours: latchkey appliance approve ${name}, else: latchkey appliance remove ${name}`,
    ];
  }
  const lines: string[] = [];
  if (appliance.without_credentials === true) {
    lines.push(
      `${name}: nobody can ask for its token, as it is declared no longer or its credentials were damaged: latchkey appliance rotate-secret ${name}, or latchkey appliance remove ${name}`,
    );
  }
  if (appliance.wanted_scope !== undefined) {
    const scope = appliance.wanted_scope === null ? 'no scope' : `the scope ${printable(appliance.wanted_scope)}`;
    lines.push(
      `${name}: it is configured with ${scope} by now, and works with that of its grant until: latchkey pair ${name}`,
    );
  }
  if (problem !== null) {
    const what = printable(problem.message);
    lines.push(`${name}: ${what}. Noticed ${ago(problem.since, now)}; ${whatToDo(problem.code, name)}`);
  } else if (state === 'unpaired' && authorize_url === undefined) {
    lines.push(`${name}: not paired yet: latchkey pair ${name}`);
  } else if (state === 'needs_pairing') {
    lines.push(`${name}: somebody must log in again: latchkey pair ${name}`);
  }
  if (authorize_url !== undefined) lines.push(`${name}: log in at ${printable(authorize_url)}`);
  return lines;
}
