/** The path of a connection. Its address on the hub names it in a `resource`, and the paths of its own endpoints begin with it. */
export const CONNECTION_PATH = '/connections/:connection';

/**
 * The names of the connections that a request is about: by the path of the endpoint, and by `resource` (RFC 8707) with
 * their addresses, at any host, because a hub has many: a token for the wrong cloud would be sent to that. Other resources
 * are those of the cloud.
 * @param path the connection in the path; undefined if it has none
 */
export function requestedConnections(path: string | undefined, body: string): readonly string[] {
  if (!body.includes('resource=')) return path === undefined ? [] : [path];
  const named = new URLSearchParams(body).getAll('resource').flatMap((resource) => {
    const [, name] = /^\/connections\/([^/]+)\/?$/.exec(URL.parse(resource)?.pathname ?? '') ?? [];
    return name ?? [];
  });
  return [...new Set(path === undefined ? named : [path, ...named])];
}
