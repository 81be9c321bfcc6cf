/**
 * The page of an appliance. For an appliance called "add" it has a trailing slash, because `/appliances/add` is the
 * form.
 * @param action a page below it, such as `remove`
 */
export function appliancePath(name: string, action?: string): string {
  const path = `/appliances/${encodeURIComponent(name)}`;
  if (action !== undefined) return `${path}/${action}`;
  return name === 'add' ? `${path}/` : path;
}

/**
 * The page of a connection; it redirects to the appliance's page for an appliance's own one. For a connection called
 * "add" it has a trailing slash, because `/connections/add` is the form.
 * @param action a page below it, such as `remove`
 */
export function connectionPath(name: string, action?: string): string {
  const path = `/connections/${encodeURIComponent(name)}`;
  if (action !== undefined) return `${path}/${action}`;
  return name === 'add' ? `${path}/` : path;
}

/** The links of printed labels, before the name of the appliance. */
export const LABEL_PATH = '/p/';

/** The form that shows the setup code. */
export const SETUP_CODE_PATH = '/setup-code';

/** The form that adds an appliance. @param connection the name of the connection that it is to use */
export function addAppliancePath(connection?: string): string {
  return connection === undefined ? '/appliances/add' : `/appliances/add?login=${encodeURIComponent(connection)}`;
}

/**
 * The page that says that a portal was added, or its data saved, when the hub runs with it.
 * @param members `reload`: the id of the reload that it waits for; `again` if the portal was there before
 */
export function portalAddedPath(
  members: Readonly<Record<'cloud' | 'name' | 'check' | 'reload', string> & { again?: 'yes' }>,
): string {
  return `/portals/added?${new URLSearchParams(members)}`;
}

/** The form that adds a portal. @param cloud the name of a preset, `helper` or `other` */
export function addPortalPath(cloud: string): string {
  return `/portals/add?${new URLSearchParams({ cloud })}`;
}

/** The form that takes the data of an added portal again. */
export function portalAgainPath(name: string): string {
  return `/portals/add?${new URLSearchParams({ again: name })}`;
}

/** The page of a user code. */
export function userCodePath(userCode: string): string {
  return `/pair?user_code=${encodeURIComponent(userCode)}`;
}

/** The page that asks an installer whether an appliance may use its connection. @param userCode of its device flow */
export function approvalPath(userCode: string): string {
  return `/pair/approve?user_code=${encodeURIComponent(userCode)}`;
}

/** The page that shows an appliance's credentials. @param form the idempotency key of the form that requested them */
export function credentialsPath(form: string, name: string): string {
  return `/credentials/${form}/${encodeURIComponent(name)}`;
}

/** The page of a pairing. */
export function pairingPath(id: string): string {
  return `/pairings/${encodeURIComponent(id)}`;
}

/** The page that takes the address on which a browser ended after a login. @param id of the pairing */
export function pasteAddressPath(id: string): string {
  return `${pairingPath(id)}/address`;
}

/** The page of a pairing batch. */
export function pairingBatchPath(id: string): string {
  return `/batches/${encodeURIComponent(id)}`;
}
