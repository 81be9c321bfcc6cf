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
    styleText(COLOURS[appliance.state] ?? 'reset', appliance.state, { stream: process.stdout }),
    printable(appliance.scope ?? '–'),
    inTime(appliance.expires_in),
    inTime(appliance.refresh_in),
    ago(appliance.last_refresh, now),
    printable(appliance.portal),
  ];
}

function remark({ name, state, problem, authorize_url }: ApplianceStatus, now: number): string[] {
  const lines: string[] = [];
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
