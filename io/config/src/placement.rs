//! The placement of agents on threads, chosen in the configuration and not in the code.

use serde::{Deserialize, Serialize};
use tickpath_agent::{Agent, IdleStrategy, ThreadPlan};
use tickpath_types::Nanos;

use crate::ConfigError;

/// Interval of the agents' warm-up (`Agent::warm_up`) while their thread has no work.
const WARM_UP_INTERVAL: Option<Nanos> = Some(Nanos(5000));

/// One thread and the agents that run on it in turn.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ThreadConfig {
    /// Name of the thread.
    pub name: String,
    /// Core to pin it to; not pinned when absent.
    #[serde(default)]
    pub core: Option<usize>,
    /// Roles in the order of their duty cycles; a role may appear more than once.
    pub agents: Vec<String>,
}

/// The placement of all agents of a program on threads.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Placement {
    /// Idle strategy of the threads between duty cycles without work.
    #[serde(default)]
    pub idle: IdleStrategy,
    /// Core of the thread that reads the timing stamps and prints the display; not pinned when absent.
    #[serde(default)]
    pub observer: Option<usize>,
    /// The threads.
    #[serde(rename = "thread")]
    pub threads: Vec<ThreadConfig>,
}

impl Placement {
    /// Returns a placement of `(thread, agents)` pairs. `cores` lists the cores that this process may run on.
    /// If there is a core for each thread, thread `n` is pinned to the `n`th core; otherwise no thread is
    /// pinned.
    #[must_use]
    pub fn new(idle: IdleStrategy, cores: &[usize], threads: &[(&str, &[&str])]) -> Placement {
        let pin = cores.len() >= threads.len();
        let threads = threads
            .iter()
            .enumerate()
            .map(|(index, (name, agents))| ThreadConfig {
                name: (*name).to_owned(),
                core: pin.then(|| cores[index]),
                agents: agents.iter().map(|role| (*role).to_owned()).collect(),
            })
            .collect();
        Placement { idle, observer: None, threads }
    }

    /// Pins the observer to the core of the named thread; to no core if that thread is not pinned.
    #[must_use]
    pub fn observed_beside(self, thread: &str) -> Placement {
        let observer = self.threads.iter().find(|known| known.name == thread).and_then(|known| known.core);
        Placement { observer, ..self }
    }

    /// Renames each role to the result of `role`, or removes it for `None`. Removes threads without agents.
    #[must_use]
    pub fn with_roles(&self, role: impl Fn(&str) -> Option<&str>) -> Placement {
        let mut placement = self.clone();
        for thread in &mut placement.threads {
            thread.agents = thread.agents.iter().filter_map(|agent| role(agent)).map(str::to_owned).collect();
        }
        placement.threads.retain(|thread| !thread.agents.is_empty());
        placement
    }

    /// True if a thread runs the agent with this role.
    #[must_use]
    pub fn names(&self, role: &str) -> bool {
        self.threads.iter().any(|thread| thread.agents.iter().any(|agent| agent == role))
    }

    /// Checks that every role is assigned to exactly one thread.
    ///
    /// # Errors
    /// [`ConfigError::Value`] when a role is on no thread or on two, or a thread names an unknown role or no
    /// role.
    pub fn check(&self, roles: &[&str]) -> Result<(), ConfigError> {
        let mut unplaced = roles.to_vec();
        for thread in &self.threads {
            if thread.agents.is_empty() {
                return Err(ConfigError::value(format!(
                    "thread '{}' has no agents: leave it out",
                    thread.name
                )));
            }
            for (place, role) in thread.agents.iter().enumerate() {
                if thread.agents[..place].contains(role) {
                    continue;
                }
                let Some(found) = unplaced.iter().position(|unplaced| unplaced == role) else {
                    return Err(ConfigError::value(format!(
                        "thread '{}': there is no agent '{role}' left to run: check its spelling and the other threads",
                        thread.name
                    )));
                };
                unplaced.remove(found);
            }
        }
        match unplaced.first() {
            Some(role) => {
                Err(ConfigError::value(format!("no thread runs the agent '{role}': name it in one")))
            }
            None => Ok(()),
        }
    }

    /// Assigns each agent to its thread.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub fn plan(&self, agents: Vec<Box<dyn Agent>>) -> Result<Vec<ThreadPlan>, ConfigError> {
        let roles: Vec<&str> = agents.iter().map(|agent| agent.role_name()).collect();
        self.check(&roles)?;
        let mut unplaced = agents;
        Ok(self.threads.iter().map(|thread| thread.plan(self.idle, &mut unplaced)).collect())
    }
}

impl ThreadConfig {
    /// Returns the plan of this thread, with its agents taken out of `unplaced`.
    fn plan(&self, idle: IdleStrategy, unplaced: &mut Vec<Box<dyn Agent>>) -> ThreadPlan {
        let mut agents: Vec<Box<dyn Agent>> = Vec::new();
        let mut cycle = Vec::with_capacity(self.agents.len());
        for role in &self.agents {
            let index = agents.iter().position(|agent| agent.role_name() == role).unwrap_or_else(|| {
                let found = unplaced.iter().position(|agent| agent.role_name() == role);
                agents.push(unplaced.remove(found.expect("the placement was checked against the agents")));
                agents.len() - 1
            });
            cycle.push(index);
        }
        let name = self.name.clone();
        ThreadPlan { name, core: self.core, idle, warm_up_interval: WARM_UP_INTERVAL, agents, cycle }
    }
}

#[cfg(test)]
mod tests {
    use tickpath_agent::AgentError;
    use tickpath_types::Nanos;

    use super::*;

    struct Role(&'static str);

    impl Agent for Role {
        fn do_work(&mut self, _now: Nanos) -> Result<usize, AgentError> {
            Ok(0)
        }
        fn role_name(&self) -> &'static str {
            self.0
        }
    }

    fn agents(roles: &[&'static str]) -> Vec<Box<dyn Agent>> {
        roles.iter().map(|role| Box::new(Role(role)) as Box<dyn Agent>).collect()
    }

    #[test]
    fn a_role_may_occur_twice_in_a_cycle() {
        let placement =
            Placement::new(IdleStrategy::Yield, &[1, 3], &[("venue", &["a", "b", "a"]), ("trader", &["c"])]);
        let plans = placement.plan(agents(&["c", "b", "a"])).unwrap();
        assert_eq!(plans[0].cycle, [0, 1, 0]);
        assert_eq!((plans[0].agents.len(), plans[1].agents.len()), (2, 1));
        assert_eq!((plans[0].core, plans[1].core), (Some(1), Some(3)), "the cores that are allowed");
        let crowded = Placement::new(IdleStrategy::Park, &[1], &[("x", &["a"]), ("y", &["b"])]);
        assert_eq!(crowded.threads[1].core, None, "more threads than cores");
        assert!(crowded.names("b") && !crowded.names("x"));
    }

    #[test]
    fn every_agent_has_one_thread() {
        let placement =
            Placement::new(IdleStrategy::Yield, &[0, 1], &[("venue", &["a"]), ("trader", &["b"])]);
        for (roles, expected) in [(&["a", "b", "c"][..], "'c'"), (&["a"][..], "'b'")] {
            let error = placement.plan(agents(roles)).err().unwrap().to_string();
            assert!(error.contains(expected), "{error}");
        }
        let twice = Placement::new(IdleStrategy::Yield, &[0, 1], &[("venue", &["a"]), ("trader", &["a"])]);
        assert!(twice.plan(agents(&["a"])).is_err());
        let empty = Placement::new(IdleStrategy::Yield, &[], &[("venue", &["a"]), ("trader", &[])]);
        assert!(empty.check(&["a"]).unwrap_err().to_string().contains("'trader' has no agents"));
    }
}
