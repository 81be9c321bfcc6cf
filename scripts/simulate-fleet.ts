// Simulates a fleet of hubs with the daemon's own scheduling code, in the scenarios of scripts/fleet.d/scenarios.ts.
import { parseArgs } from 'node:util';
import { writeSection } from './bench.d/benchmarks-page.ts';
import { fleetReport } from './fleet.d/report.ts';
import { SCENARIOS, simulate } from './fleet.d/scenarios.ts';

/** A run with this number of hubs writes docs/benchmarks.md. */
const DOCUMENTED_HUBS = 100_000;
/** In a smaller fleet the busiest minute is random. */
const MIN_HUBS = 4000;

const { hubs, seed } = options();
const outcomes = SCENARIOS.map((scenario) => {
  console.error(`latchkey: ${scenario.title}, ${hubs} hubs, seed ${seed}`);
  return simulate(scenario, hubs, seed);
});
const report = fleetReport(outcomes);
console.log(report.tables.join('\n\n'));
for (const { text, measured, verdict } of report.targets) console.log(`${verdict.toUpperCase()}: ${text}: ${measured}`);
if (hubs === DOCUMENTED_HUBS) {
  const how = `\`./scripts/simulate-fleet --seed ${seed}\`: ${DOCUMENTED_HUBS.toLocaleString('en')} hubs. The same seed gives the same figures on every machine.`;
  writeSection('fleet', 'A fleet of 100,000 hubs', how, report);
}
process.exitCode = report.targets.every(({ verdict }) => verdict === 'met') ? 0 : 1;

function options(): { hubs: number; seed: number } {
  try {
    const { values } = parseArgs({
      options: { quick: { type: 'boolean' }, hubs: { type: 'string' }, seed: { type: 'string' } },
    });
    const whole = (name: 'hubs' | 'seed', defaultValue: number, max: number) => {
      const text = values[name] ?? String(defaultValue);
      if (!/^[1-9]\d{0,8}$/.test(text) || Number(text) > max) {
        throw new Error(`--${name}: found ${text}; allowed is a whole number from 1 to ${max}`);
      }
      return Number(text);
    };
    return {
      hubs: whole('hubs', values.quick ? MIN_HUBS : DOCUMENTED_HUBS, 1_000_000),
      seed: whole('seed', 1, 999_999_999),
    };
  } catch (error) {
    const [what] = (error instanceof Error ? error.message : String(error)).split('\n');
    console.error(`scripts/simulate-fleet: ${what}; allowed are --quick, --hubs N, --seed S`);
    process.exit(2);
  }
}
