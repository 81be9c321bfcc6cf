/**
 * The page of an appliance. One that is called "add" is not where appliances are added.
 * @param below what of it, such as `remove`
 */
export function appliancePath(name: string, below?: string): string {
  const path = `/appliances/${encodeURIComponent(name)}`;
  if (below !== undefined) return `${path}/${below}`;
  return name === 'add' ? `${path}/` : path;
}
