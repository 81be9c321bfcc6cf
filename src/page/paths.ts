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

/** The page that shows an appliance's credentials. @param form the idempotency key of the form that requested them */
export function credentialsPath(form: string, name: string): string {
  return `/credentials/${form}/${encodeURIComponent(name)}`;
}

/** The page of a pairing. */
export function pairingPath(id: string): string {
  return `/pairings/${encodeURIComponent(id)}`;
}

/** The page of a pairing batch. */
export function pairingBatchPath(id: string): string {
  return `/batches/${encodeURIComponent(id)}`;
}
