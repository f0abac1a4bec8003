//! The commands of an operator to a mobile node.

use super::MobileNode;
use crate::registrar::Target;
use node::{Command, Outbox, Role, Value};
use wire::Instant;

impl MobileNode {
    pub(super) fn command(
        &mut self,
        now: Instant,
        command: &Command,
        out: &mut Outbox,
    ) -> Result<Value, String> {
        match command.verb.as_str() {
            "register" => self.command_register(now, command, out),
            "deregister" => self.command_deregister(now, out),
            verb => Err(format!("unknown command `{verb}`; known: {}", self.verbs().join(", "))),
        }
    }

    /// Executes the command `register {agent}`: registers with this agent. Without the argument, registers again with
    /// the agent in use.
    fn command_register(
        &mut self,
        now: Instant,
        command: &Command,
        out: &mut Outbox,
    ) -> Result<Value, String> {
        let heard = || self.used.agents.iter().map(|(who, _)| who.to_string()).collect::<Vec<_>>().join(", ");
        let agent = match command.args.get("agent") {
            None if self.attached.is_none() && self.own.address().is_some() => {
                self.register_directly(now, out);
                return Ok(Value::map([("agent", Value::from(self.registrar.home_agent()))]));
            }
            None => self.attached.ok_or_else(|| {
                format!(
                    "no agent is in use; `agent`: must be an agent that the mobile node hears and that accepts registrations; it hears: {}",
                    heard()
                )
            })?,
            Some(named) => {
                let named = named.as_text().and_then(|text| text.parse().ok());
                let usable = named.filter(|agent| self.is_usable(*agent));
                usable.ok_or_else(|| {
                    format!("`agent`: must be an agent that the mobile node hears and that accepts registrations; it hears: {}", heard())
                })?
            }
        };
        self.attach(now, agent, out);
        Ok(Value::map([("agent", Value::from(agent))]))
    }

    /// Executes the command `deregister`: ends the registration through the agent in use. The node registers again when
    /// movement detection decides so, for example for a new agent.
    fn command_deregister(&mut self, now: Instant, out: &mut Outbox) -> Result<Value, String> {
        let target = self
            .present_target()
            .ok_or("no agent that takes registrations is in use, so no registration can be ended")?;
        let answer = Value::map([("agent", Value::from(target.agent))]);
        self.registrar.turn_to(Some(Target { lifetime: 0, ..target }));
        self.register(now, out);
        Ok(answer)
    }
}
