/** An attribute that refers to a path of the hub. Text that was escaped contains no quotation mark. */
const LINK_ATTRIBUTE = /(\s(?:href|action|formaction|src)=")(?=\/(?!\/))/g;

/**
 * Puts a base path before every link, form and script of a page. All pages pass through here, so that no new link can
 * forget it.
 * @param html with paths of the hub
 */
export function addBasePath(html: string, basePath: string): string {
  return basePath === '' ? html : html.replaceAll(LINK_ATTRIBUTE, (attribute) => attribute + basePath);
}

/** The target of a redirect below a base path; an address on another site stays as it is. */
export function redirectBelow(location: string, basePath: string): string {
  return /^\/(?!\/)/.test(location) ? basePath + location : location;
}
