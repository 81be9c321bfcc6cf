import type { ApplianceResponse } from '../../control/messages.ts';
import { formatTimeSince } from '../terminal/duration.ts';
import { printable } from '../terminal/output.ts';
import { alignColumns } from '../terminal/table.ts';

/** A table of the tokens that each appliance got; null if there is nothing to say. @param now milliseconds since 1970 */
export function usageText(appliances: readonly ApplianceResponse[], now: number): string | null {
  const hasRefused = appliances.some(({ refused }) => refused !== undefined);
  if (!hasRefused && appliances.every(({ last_token: last }) => last === null)) return null;
  return alignColumns([
    ['TOKENS', 'LAST', 'TODAY', '14 DAYS', ...(hasRefused ? ['REFUSED REQUESTS'] : [])],
    ...appliances.flatMap(({ name, last_token, tokens, refused, usage = [] }) => [
      [
        ...countCells(printable(name), { last_token, tokens }, now),
        ...(hasRefused ? [refused === undefined ? '–' : `${refused.count} since ${refused.since}`] : []),
      ],
      ...usage.map((each) => [
        ...countCells(`  ${printable(each.connection)}`, each, now),
        ...(hasRefused ? [''] : []),
      ]),
    ]),
  ]);
}

function countCells(
  name: string,
  { last_token: last, tokens }: Pick<ApplianceResponse, 'last_token' | 'tokens'>,
  now: number,
): string[] {
  return [
    name,
    last === null ? 'never' : formatTimeSince(last, now),
    String(tokens.today),
    String(tokens.last_14_days),
  ];
}
