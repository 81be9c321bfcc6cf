/** Where people come who have typed an address. */
export const home = {
  insecure:
    'The page of this hub is on a secure address. The browser warns of its certificate once: it is the hub’s own.',
  goThere: 'Go there',
  nothingHere: 'There is nothing here',
  nothingHereText: 'Check the address.',
};
