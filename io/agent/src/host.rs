//! Description of the machine, for reports.

use std::fmt;
use std::fs;

use nix::sched::{CpuSet, sched_getaffinity};
use nix::unistd::Pid;

/// The machine and the resources that the process may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// The CPU's model name, family, model and stepping; without these, as on Arm, its implementer and part.
    pub cpu_model: String,
    /// True when the CPU reports a hypervisor.
    pub is_virtual: bool,
    /// Cores that this process may run on.
    pub cores_allowed: Vec<usize>,
    /// Memory of the machine in bytes.
    pub memory_bytes: u64,
    /// Release of the kernel.
    pub kernel: String,
    /// Properties of the time-stamp counter.
    pub tsc: TscFacts,
}

/// Properties of the time-stamp counter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TscFacts {
    /// True when the CPU reports one rate of the counter in all power states. A hypervisor may hide this.
    pub is_invariant: bool,
    /// True when the kernel found that the rate is constant and that the counter does not stop.
    pub is_constant: bool,
    /// The kernel's clock source, e.g. `tsc` or `kvm-clock`; empty where it cannot be read.
    pub clock_source: String,
    /// True when the kernel offers the counter as a clock source, or when this cannot be read. The kernel
    /// does not offer it when the counters of the cores disagree.
    pub is_offered: bool,
}

impl TscFacts {
    /// Reads the properties from the CPU and the kernel.
    #[must_use]
    pub fn read() -> TscFacts {
        TscFacts::of(is_counter_invariant(), &read("/proc/cpuinfo"), &clock_sources())
    }

    fn of(is_invariant: bool, cpuinfo: &str, [current, available]: &[String; 2]) -> TscFacts {
        let flags = field(cpuinfo, "flags");
        let has = |flag| flags.split_whitespace().any(|word| word == flag);
        TscFacts {
            is_invariant,
            is_constant: has("constant_tsc") && has("nonstop_tsc"),
            clock_source: current.clone(),
            is_offered: available.is_empty()
                || available.split_whitespace().any(|name| name == COUNTER_CLOCK_SOURCE),
        }
    }

    /// True when the counter is usable as a clock.
    #[must_use]
    pub fn is_usable(&self) -> bool {
        (self.is_invariant || self.is_constant) && self.is_offered
    }
}

impl fmt::Display for TscFacts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let yes_no = |is: bool| if is { "yes" } else { "no" };
        write!(
            f,
            "invariant (CPUID) {}, constant (kernel) {}, offered as clock {}; clock source {}",
            yes_no(self.is_invariant),
            yes_no(self.is_constant),
            yes_no(self.is_offered),
            if self.clock_source.is_empty() { "unknown" } else { &self.clock_source },
        )
    }
}

impl Host {
    /// Describes this machine.
    #[must_use]
    pub fn describe() -> Host {
        let cpuinfo = read("/proc/cpuinfo");
        let cpu_flags = field(&cpuinfo, "flags");
        Host {
            cpu_model: cpu_model(&cpuinfo),
            is_virtual: cpu_flags.split_whitespace().any(|flag| flag == "hypervisor"),
            cores_allowed: cores_allowed(),
            memory_bytes: memory_bytes(&read("/proc/meminfo")),
            kernel: read("/proc/sys/kernel/osrelease"),
            tsc: TscFacts::of(is_counter_invariant(), &cpuinfo, &clock_sources()),
        }
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.is_virtual { "virtual machine" } else { "no hypervisor reported" };
        writeln!(f, "cpu     {} ({kind})", self.cpu_model)?;
        writeln!(f, "cores   {:?} allowed", self.cores_allowed)?;
        writeln!(f, "memory  {:.1} GiB", self.memory_bytes as f64 / f64::from(1 << 30))?;
        writeln!(f, "kernel  {}", self.kernel)?;
        write!(f, "tsc     {}", self.tsc)
    }
}

fn read(path: &str) -> String {
    fs::read_to_string(path).map(|text| text.trim().to_owned()).unwrap_or_default()
}

/// Returns the value of the first line of `text` that reads `name : value`.
fn field<'a>(text: &'a str, name: &str) -> &'a str {
    let values = text.lines().filter_map(|line| line.split_once(':'));
    values.into_iter().find(|(key, _)| key.trim() == name).map_or("", |(_, value)| value.trim())
}

fn cpu_model(cpuinfo: &str) -> String {
    let [name, family, model, stepping] =
        ["model name", "cpu family", "model", "stepping"].map(|name| field(cpuinfo, name));
    match (name, family) {
        ("", "") => {
            format!("implementer {} part {}", field(cpuinfo, "CPU implementer"), field(cpuinfo, "CPU part"))
        }
        _ => format!("{name}, family {family} model {model} stepping {stepping}"),
    }
}

fn cores_allowed() -> Vec<usize> {
    let allowed = sched_getaffinity(Pid::from_raw(0)).unwrap_or_default();
    (0..CpuSet::count()).filter(|core| allowed.is_set(*core).unwrap_or(false)).collect()
}

fn memory_bytes(meminfo: &str) -> u64 {
    let kibibytes =
        field(meminfo, "MemTotal").split_whitespace().next().and_then(|number| number.parse().ok());
    kibibytes.unwrap_or(0_u64) * 1024
}

fn clock_sources() -> [String; 2] {
    ["current_clocksource", "available_clocksource"]
        .map(|name| read(&format!("/sys/devices/system/clocksource/clocksource0/{name}")))
}

#[cfg(target_arch = "x86_64")]
const COUNTER_CLOCK_SOURCE: &str = "tsc";
#[cfg(not(target_arch = "x86_64"))]
const COUNTER_CLOCK_SOURCE: &str = "arch_sys_counter";

#[cfg(target_arch = "x86_64")]
fn is_counter_invariant() -> bool {
    use std::arch::x86_64::__cpuid;
    const POWER_MANAGEMENT_LEAF: u32 = 0x8000_0007;
    const INVARIANT_TSC: u32 = 1 << 8;
    __cpuid(0x8000_0000).eax >= POWER_MANAGEMENT_LEAF
        && __cpuid(POWER_MANAGEMENT_LEAF).edx & INVARIANT_TSC != 0
}

/// True on aarch64, whose generic timer has a constant rate; false on other CPUs, which then use the system
/// clock.
#[cfg(not(target_arch = "x86_64"))]
fn is_counter_invariant() -> bool {
    cfg!(target_arch = "aarch64")
}

#[cfg(test)]
mod tests {
    use super::*;

    const CPUINFO: &str = "processor\t: 0\ncpu family\t: 6\nmodel\t\t: 207\nmodel name\t: Some CPU\n\
                           stepping\t: 2\nflags\t\t: fpu constant_tsc nonstop_tsc hypervisor\n";

    fn sources(current: &str, available: &str) -> [String; 2] {
        [current.to_owned(), available.to_owned()]
    }

    #[test]
    fn the_counter_is_usable_only_when_known_constant_and_trusted_by_the_kernel() {
        let usable = |is_invariant, cpuinfo, available| {
            TscFacts::of(is_invariant, cpuinfo, &sources("x", &format!("{available} {COUNTER_CLOCK_SOURCE}")))
                .is_usable()
        };
        assert!(usable(true, "", "kvm-clock"));
        assert!(usable(false, CPUINFO, "kvm-clock")); // a hypervisor that hides the CPUID bit
        assert!(!usable(false, "flags : fpu constant_tsc", "kvm-clock"));
        assert!(!TscFacts::of(true, CPUINFO, &sources("hpet", "hpet acpi_pm")).is_usable());
        assert!(TscFacts::of(true, CPUINFO, &sources("", "")).is_usable());
    }

    #[test]
    fn fields_are_found_by_their_whole_name() {
        assert_eq!(cpu_model(CPUINFO), "Some CPU, family 6 model 207 stepping 2");
        assert_eq!(memory_bytes("MemFree: 1 kB\nMemTotal:       2048 kB"), 2 << 20);
        assert_eq!(field("a: 1", "b"), "");
    }

    #[test]
    fn this_machine_has_cores_memory_and_a_kernel() {
        let host = Host::describe();
        assert!(!host.cores_allowed.is_empty());
        assert!(host.memory_bytes > 0);
        assert!(!host.kernel.is_empty());
        assert!(host.to_string().contains(&host.kernel));
    }
}
