/** The page of one appliance, and what is asked back before something is lost. */
export const appliance = {
  state: 'State',
  refreshNow: 'Refresh now',
  clientId: 'Client ID',
  manage: 'Change',
  newSecret: 'New secret',
  doorLabel: 'Label for the door',
  disconnect: 'Disconnect',
  remove: 'Remove',
  declared:
    'It is declared in the hub’s configuration file: its secret and whether it is there are changed in that file.',
  rotateSure: (name: string) => `Give ${name} a new secret?`,
  rotateText:
    'The old secret stops working at once. The new one has to be put into the appliance. It stays connected to the portal.',
  rotateKeys: 'It proves itself by keys of its own. A secret would replace them, and they would stop working.',
  rotateKeysTick: 'Replace its keys',
  rotateKeysMissing: 'Tick this if its keys are to be replaced.',
  disconnectSure: (name: string) => `Disconnect ${name}?`,
  disconnectText:
    'The hub forgets the login and gives it no more access. To connect it again, somebody has to log in again.',
  removeSure: (name: string) => `Remove ${name}?`,
  removeText: 'The hub forgets the appliance, its secret and its login. This cannot be taken back.',
  refuseSure: (name: string) => `Refuse ${name}?`,
  refuseText: 'The hub forgets that it has introduced itself. It may do so again while the door is open.',
  gone: 'There is no such appliance',
  goneText: (name: string) => `${name} is not known to the hub. Perhaps it has been removed meanwhile.`,
  backToOverview: 'To the overview',
  backToAppliance: (name: string) => `To ${name}`,
  /** Why something was not done. */
  failures: {
    appliance_declared: 'The hub’s configuration file declares this appliance, so it is changed there and not here.',
    not_allowed: 'That is not possible the way things are now. Perhaps somebody else has done it already.',
    store_unwritable: 'The hub could not save it: its disk is full or damaged. Nothing was changed.',
    token_unavailable: 'It is not connected, so there is nothing to refresh. Log in first.',
    hub_stopping: 'The hub is being restarted. Try again in a moment.',
    other: 'The hub could not do it. Its log tells more.',
  },
  notDone: 'Nothing was changed',
};
