import * as v from 'valibot';
import { parseDuration } from '../system/clock.ts';

/** A text with at least one character. @param expected completes "KEY: must be …" */
export const text = (expected: string) => v.pipe(v.string(expected), v.nonEmpty(expected));

/** A duration between two limits, both in ms. @param expected completes "KEY: must be …" */
export const duration = (expected: string, min: number, max: number) => {
  const inRange = (value: number | null) => value !== null && value >= min && value <= max;
  return v.pipe(
    v.string(expected),
    v.check((value) => inRange(parseDuration(value)), expected),
    v.transform((value) => parseDuration(value) ?? min),
  );
};
