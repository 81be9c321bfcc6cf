/**
 * The page of an appliance. One that is called "add" is not where appliances are added.
 * @param below what of it, such as `remove`
 */
export function appliancePath(name: string, below?: string): string {
  const path = `/appliances/${encodeURIComponent(name)}`;
  if (below !== undefined) return `${path}/${below}`;
  return name === 'add' ? `${path}/` : path;
}

/** Where an appliance's credentials are shown. @param form the token of the form that they were asked for with */
export function credentialsPath(form: string, name: string): string {
  return `/credentials/${form}/${encodeURIComponent(name)}`;
}

/** The page of a pairing. */
export function pairingPath(id: string): string {
  return `/pairings/${encodeURIComponent(id)}`;
}

/** The page of a round. */
export function pairingBatchPath(id: string): string {
  return `/rounds/${encodeURIComponent(id)}`;
}
