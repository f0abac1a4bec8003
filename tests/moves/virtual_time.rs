//! The moves in the simulator, with commands at least one millisecond apart.

use crate::moves::script::{self, Step};
use crate::moves::{cast, judge};
use node::{Command, Value};
use sim::World;
use trace::{HostId, What};
use wire::{Duration, Instant};

const STEP: Duration = Duration::from_millis(1);
/// The pause between two attempts.
const PAUSE: Duration = Duration::from_millis(200);

struct Script<'a> {
    world: &'a mut World,
    names: Vec<String>,
    at: Instant,
    commands: usize,
}

impl Script<'_> {
    fn then(&mut self, step: &Step) {
        let host = self.names.iter().position(|name| name == step.host).unwrap();
        let to = step.to.map_or(Value::None, |to| Value::map([("to", Value::from(to))]));
        let command = Command { verb: step.verb.to_owned(), args: to };
        self.world.command(self.at, HostId(host as u32), command);
        self.commands += 1;
        // Bytes that arrive while no program reads must be in the exported state.
        self.at += if step.verb == "rest" { 10 * STEP } else { STEP };
    }

    fn all(&mut self, steps: &[Step]) {
        for step in steps {
            self.then(step);
        }
        self.at += PAUSE;
    }
}

/// Runs `number` moves, each after an abandoned one.
pub(crate) fn moves(number: usize) -> judge::Verdict {
    let plan = cast::plan(Duration::from_secs(30) + 3 * PAUSE * number as u32);
    let mut world = plan.world_of(cast::nodes(&plan)).unwrap();
    let mut script =
        Script { world: &mut world, names: plan.host_names(), at: Instant::from_millis(10), commands: 0 };
    script.all(&[script::route("m1"), Step { host: script::CORRESPONDENT, verb: "call", to: None }]);
    for number in 0..number {
        let (old, new) = script::ends(number);
        script.all(&script::abandoned(old, new, script::gives_up_after(number)));
        script.all(&script::relocation(old, new));
    }
    let (last_at, _) = script::ends(number);
    script.all(&[script::CORRESPONDENT, last_at].map(|host| Step { host, verb: "finish", to: None }));
    let commands = script.commands;
    let run = world.run(plan.end());
    let answers: Vec<_> = run
        .records
        .iter()
        .filter_map(|record| match &record.what {
            What::Answered(answer) => Some(answer),
            _ => None,
        })
        .collect();
    assert_eq!(answers.len(), commands);
    assert_eq!(answers.iter().filter_map(|answer| answer.as_ref().err()).collect::<Vec<_>>(), [""; 0]);
    judge::judge(&plan, &run.records, last_at)
}
