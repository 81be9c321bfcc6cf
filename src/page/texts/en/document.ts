/** What stands around every page. */
export const document = {
  hub: 'Latchkey hub',
  hubNamed: (name: string) => `Latchkey hub “${name}”`,
};
