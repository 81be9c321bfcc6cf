// Loaded into the fuzzed emulator before it starts: collects garbage when asked, and tells what is left, in bytes.
process.on('message', () => {
  globalThis.gc?.();
  const { heapUsed, external } = process.memoryUsage();
  process.send?.(heapUsed + external);
});
// The emulator must not outlive the fuzz, however that ends; and the channel must not keep it alive.
process.on('disconnect', () => process.exit(1));
process.channel?.unref();
