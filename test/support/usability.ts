import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import type { Visit } from './browser.ts';
import { IS_LONG_FORM } from './long.ts';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/**
 * Asserts that neither axe nor the checks here find a usability problem on the page. If they do, a screenshot is among
 * the logs; the long form of the tests saves one of every page.
 * @param name of the screenshot
 * @param allowed axe rules that the page breaks for a reason
 */
export async function expectUsable(visit: Visit, name: string, allowed: readonly string[] = []): Promise<void> {
  const { page, scripts } = visit;
  // axe runs in the page and needs timers.
  const violations = scripts ? await axeViolations(page) : [];
  const found = [
    ...(await findUsabilityProblems(page)),
    ...violations.filter((one) => !allowed.some((rule) => one.startsWith(`${rule}:`))),
  ];
  await visit.takeScreenshot(name, IS_LONG_FORM || found.length > 0);
  expect(found, name).toEqual([]);
}

/** The structures of the pages that axe has passed, in this process. */
const passed = new Set<string>();

/**
 * The findings of axe on a page, each with its elements. A page with the structure of one that passed is not checked
 * again: its texts, colours and size matter only to the checks here.
 */
async function axeViolations(page: Page): Promise<string[]> {
  const structure = await page.evaluate(() => {
    const SIGNIFICANT = ['aria-hidden', 'aria-live', 'autocomplete', 'role', 'type'];
    const shapeOf = (element: Element) => [
      element.tagName,
      ...[...element.attributes].map(({ name, value }) => (SIGNIFICANT.includes(name) ? `${name}=${value}` : name)),
    ];
    // Repeated neighbours, such as the modules of a QR code, count once.
    const shapes = [...document.querySelectorAll('*')].map((element) => shapeOf(element).join(' '));
    return shapes.filter((shape, index) => shape !== shapes[index - 1]).join('\n');
  });
  if (passed.has(structure)) return [];
  const found = await findAxeViolations(page);
  if (found.length === 0) passed.add(structure);
  return found;
}

async function findAxeViolations(page: Page): Promise<string[]> {
  if (!(await page.evaluate(() => 'axe' in globalThis))) await page.evaluate(AXE);
  return page.evaluate(async () => {
    const { axe } = globalThis as unknown as { readonly axe: typeof import('axe-core') };
    // Without details of passed rules, axe takes half the time.
    const { violations } = await axe.run({ resultTypes: ['violations'] });
    return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 200)).join(' | ')}`);
  });
}

/** The usability problems of a page, one per line. */
export function findUsabilityProblems(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const found: string[] = [];
    const name = (element: Element) => `${element.tagName.toLowerCase()} "${element.textContent?.trim().slice(0, 40)}"`;
    const width = document.documentElement.clientWidth;
    if (document.documentElement.scrollWidth > width) found.push('the page is wider than the window');
    for (const element of document.querySelectorAll('body *')) {
      const box = element.getBoundingClientRect();
      if (box.width === 0 || box.height === 0) continue;
      if (box.left < 0 || box.right > width) found.push(`${name(element)} is cut off`);
      if (element.matches('input, button, a') && box.height < 44) found.push(`${name(element)} is small for a finger`);
      const style = getComputedStyle(element);
      if (element.matches('input') && Number.parseFloat(style.fontSize) < 16)
        found.push(`${name(element)} makes phones zoom`);
      const hasText = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent?.trim() !== '');
      if (!hasText) continue;
      if (Number.parseFloat(style.fontSize) < 14) found.push(`${name(element)} is in small print`);
      const contrast = contrastOf(channels(style.color), background(element));
      if (!(contrast >= 4.5)) found.push(`${name(element)} has a contrast of ${contrast.toFixed(1)}`);
    }
    return found;

    function channels(color: string): number[] {
      return (color.match(/[\d.]+/g) ?? []).map(Number);
    }

    /**
     * The nearest opaque background; if a page sets none, contrast can't be computed, which is a problem too (contrast
     * NaN).
     */
    function background(element: Element | null): number[] {
      for (let one = element; one !== null; one = one.parentElement) {
        const color = channels(getComputedStyle(one).backgroundColor);
        if (color.length === 3 || color[3] === 1) return color;
      }
      return [Number.NaN, Number.NaN, Number.NaN];
    }

    /** Contrast ratio according to WCAG 2.2. */
    function contrastOf(one: number[], other: number[]): number {
      const [high = 0, low = 0] = [luminance(one), luminance(other)].sort((a, b) => b - a);
      return (high + 0.05) / (low + 0.05);
    }

    function luminance(color: number[]): number {
      const [red = 0, green = 0, blue = 0] = color.map((value) => {
        const part = value / 255;
        return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
      });
      return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
    }
  });
}
