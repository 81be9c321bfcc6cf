import { join } from 'node:path';
import { expect, test } from 'vitest';
import { FLOW_OF, GROUPS, type Group, type Situation } from '../../../src/emulator/exam/situation.ts';
import { SITUATIONS } from '../../../src/emulator/exam/situations/all.ts';
import { root } from '../../project/checkout.ts';

const INTRODUCTION = `# The situations of the exam

What [the exam](exam-your-client.md) tries, and what says so. The page is made from \`src/emulator/exam/situations/\`.
`;

/** How the client of a group gets its grant. */
const FLOWS = {
  refresh: 'The client begins with a refresh token.',
  code: 'The client logs in by authorization code.',
  device: 'The client logs in by device code.',
  mcp: 'The client knows nothing but the address of the API.',
} as const;

test('docs/exam-situations.md describes every situation (./scripts/test --update emulator/exam/situations writes it)', async () => {
  const row = ({ name, right, source }: Situation) => `| \`${name}\` | ${right} | ${source} |`;
  const section = (group: Group) =>
    [
      `## ${group}\n\n${FLOWS[FLOW_OF[group]]}\n\n| situation | what is right | source |\n|---|---|---|`,
      ...SITUATIONS.filter((one) => one.group === group).map(row),
    ].join('\n');
  const page = `${[INTRODUCTION, ...GROUPS.map(section)].join('\n\n')}\n`.replace(/\n{3,}/g, '\n\n');
  await expect(page).toMatchFileSnapshot(join(root, 'docs/exam-situations.md'));
});

test('no two situations of the exam have the same name, and none has that of a group', () => {
  const names = [...GROUPS, ...SITUATIONS.map(({ name }) => name)];
  expect(names.filter((name, index) => names.indexOf(name) !== index)).toEqual([]);
});
