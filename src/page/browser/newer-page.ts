/// <reference lib="dom" />
import { learnTime, tellTimes } from './times.ts';

/** The library of that name, a script of its own (idiomorph.js). */
declare const Idiomorph: {
  morph(
    old: Element,
    fresh: Element,
    options: {
      readonly ignoreActiveValue: boolean;
      readonly callbacks: {
        beforeNodeMorphed(old: Node): boolean;
        beforeAttributeUpdated(name: string, element: Element): boolean;
      };
    },
  ): void;
};

/**
 * Reads the page that is shown once more, and brings what is shown in line with it.
 * @returns `silent` where the hub did not answer; `other` where the session is over, or the page leads elsewhere by now, or
 *   is no longer there
 */
export async function showNewer(): Promise<'shown' | 'other' | 'silent'> {
  const answer = await load(location.pathname + location.search);
  if (answer === null) return 'silent';
  const fresh = answer.responseXML?.querySelector('main[data-live]') ?? null;
  const shown = document.querySelector('main');
  if (fresh === null || shown === null || new URL(answer.responseURL).pathname !== location.pathname) return 'other';
  document.title = answer.responseXML?.title ?? document.title;
  Idiomorph.morph(shown, fresh, { ignoreActiveValue: true, callbacks: { beforeNodeMorphed, beforeAttributeUpdated } });
  learnTime();
  tellTimes();
  return 'shown';
}

/** An XMLHttpRequest reads HTML without making text into markup by script, which trusted types forbid. */
function load(path: string): Promise<XMLHttpRequest | null> {
  return new Promise((resolve) => {
    const request = new XMLHttpRequest();
    request.open('GET', path);
    request.responseType = 'document';
    request.timeout = 15_000;
    request.onload = () => resolve(request.status >= 500 ? null : request);
    request.onerror = () => resolve(null);
    request.ontimeout = () => resolve(null);
    request.send();
  });
}

/** What a person has ticked or typed stays. */
function beforeNodeMorphed(old: Node): boolean {
  if (old instanceof HTMLInputElement) return old.value === old.defaultValue && old.checked === old.defaultChecked;
  return true;
}

/** What a person has opened stays open. */
function beforeAttributeUpdated(name: string, element: Element): boolean {
  return !(name === 'open' && element instanceof HTMLDetailsElement);
}
