/** A login that several appliances can share: the hub calls it a connection. */
export const connection = {
  /** Where a sentence names it in place of its appliances. */
  quoted: (name: string) => `the login “${name}”`,
  title: (name: string) => `Login “${name}”`,
  /** Names the login after a sentence about its appliances. */
  about: (name: string) => `This is about the login “${name}”.`,
  /** The last of several names, if there are more than fit. */
  others: (count: number) => (count === 1 ? 'one more' : `${count} more`),
  usedBy: 'Used by',
  unused: 'No appliance uses this login yet.',
  addAppliance: 'Add an appliance to this login',
  declared: 'The hub’s configuration file declares this login. To change or remove it, edit that file.',
  renameMeaning:
    'The login is then called so here and in notices. Nothing else changes: nobody needs to log in again, and the secrets of its appliances stay valid.',
  disconnectMeaning: 'No access for its appliances until somebody logs in again.',
  removeMeaning: 'Deletes the login. Each of its appliances then needs a login of its own.',
  removeUnusedMeaning: 'Deletes the login on the hub.',
  disconnectHeading: (name: string) => `Disconnect the login “${name}” from the portal?`,
  disconnectText: (appliances: string) =>
    `The hub deletes the stored login and no longer gives these appliances access to the portal: ${appliances}. To connect them again, somebody has to log in at the portal again. Some portals cannot be told of this: to be sure, also remove the access in your account there.`,
  disconnectUnused:
    'The hub deletes the stored login. To connect it again, somebody has to log in at the portal again. Some portals cannot be told of this: to be sure, also remove the access in your account there.',
  removeHeading: (name: string) => `Remove the login “${name}”?`,
  removeUnused: 'The hub deletes the login. This cannot be undone.',
  removeUsed: (appliances: string) =>
    `The hub deletes the login. Each of these appliances then needs a login of its own: ${appliances}. Their secrets stay valid.`,
  notFound: 'Login not found',
  notFoundText: 'The hub does not know this login. Perhaps somebody has removed it.',
  backTo: 'To the login',
  /** Why an action on a login failed. */
  failures: {
    connection_declared: 'The hub’s configuration file declares this login, so it can only be removed there.',
    connection_exists:
      'One of the appliances cannot get a login of its own, because another login has its name. Let that appliance use another login first.',
    token_unavailable: 'This login is not connected, so there is no access to refresh. Log in at the portal first.',
  },
};

/** The form that adds a login to share. */
export const addConnection = {
  title: 'Add a login to share',
  text: 'One login at the portal for several appliances. Add it here, let the appliances use it, and log in once.',
  nameHint: 'Such as “Netatmo” or “Solar roof”; at most 64 characters.',
  scopeHint:
    'The permissions that its appliances need at the portal (“scope” in many manuals). All of them get the same ones. May stay empty.',
};

/** The choice of the login that an appliance uses. */
export const connectionChoice = {
  label: 'Login',
  several: 'Logins',
  /** Of an appliance with several logins. */
  addresses: 'One address for each login',
  addressesText:
    'Enter the address where the program gets its access (token URL) once for each login, with this end in place of “/oauth/token”.',
  own: 'A login of its own',
  option: (name: string, appliances: string) => `${name} (used by ${appliances})`,
  ownOf: (appliance: string) => `${appliance} (its own login)`,
  hint: 'Choose an existing login if the appliance is to share it. It then has the permissions of that login.',
  notOffered: (logins: string) => `Not offered, because their permissions differ: ${logins}.`,
  gone: 'This login no longer exists. Choose another one.',
  nameIsLogin:
    'There is already a login with this name. The own login of an appliance has the appliance’s name. Choose another name, or use that login.',
  /** The credentials of a new appliance whose login is connected already. */
  connected: (name: string) => `It uses the login “${name}”, which is connected: nobody needs to log in.`,
  /** Removing an appliance that shares a login. */
  removeText: (name: string) =>
    `The hub deletes the appliance and its secret. The login “${name}” stays. This cannot be undone.`,
  move: 'Use other logins',
  moveHeading: (appliance: string) => `Which logins is ${appliance} to use?`,
  moveText:
    'Most appliances use one login. A program such as a home automation can use several, and says with each request which one it means. Its secret stays valid.',
  unusedKept:
    'A login that no appliance uses any more stays on the hub. The overview then shows it, and you can remove it on its page.',
  ownRemoved: 'If you untick its own login, the hub removes it, because it is not connected.',
  moveButton: 'Use these logins',
  /** How the appliances of a login get other permissions. A link to the form that adds a login follows. */
  otherPermissions:
    'For other permissions, add a login that has them, and let the appliances use it: on the page of an appliance “More”, then “Use other logins”. Secrets stay valid.',
  /** The same on the page of an appliance, below “More”. */
  otherPermissionsHere:
    'For other permissions, first add a login that has them. After that, “Use other logins” is here. The secret stays valid.',
  none: 'No login was chosen. Choose at least one.',
  mismatch: (appliance: string, wanted: string, login: string, offered: string) =>
    `${appliance} asks for these permissions: ${wanted}. The login “${login}” gives others: ${offered}. Choose a login with the same permissions, or “A login of its own”.`,
  noPermissions: 'none',
};
