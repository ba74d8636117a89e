use rustix::time::{ClockId, clock_gettime};

/// CPU time of this thread, in nanoseconds.
pub fn cpu_ns() -> f64 {
    nanoseconds(ClockId::ThreadCPUTime)
}

/// CPU time of all threads of this process, in nanoseconds.
pub fn process_cpu_ns() -> f64 {
    nanoseconds(ClockId::ProcessCPUTime)
}

fn nanoseconds(clock: ClockId) -> f64 {
    let time = clock_gettime(clock);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}
