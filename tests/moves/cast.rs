//! The hosts of the scenario in this folder, with scripted roles.

use crate::moves::script::{CORRESPONDENT, ROUTER};
use crate::moves::scripted::{Courier, SERVICE, Switch, Talker};
use node::{Node, Role};
use roles::{RouteConfig, Via};
use scenario::{HostPlan, Plan, Scenario};
use wire::{Duration, Iface, Prefix};

/// Returns the plan, for a run of this length.
pub(crate) fn plan(duration: Duration) -> Plan {
    let mut plan = Scenario::plan("moves.toml", include_str!("moves.toml"), &[], 7).unwrap();
    plan.duration = duration;
    for host in &mut plan.hosts {
        match host.config.name.as_str() {
            CORRESPONDENT => host.config.routes.push(RouteConfig {
                to: Prefix::host(SERVICE),
                interface: ROUTER.to_owned(),
                via: Some(Via::Ip([10, 0, 0, 2].into())),
            }),
            ROUTER => {}
            _ => host.config.addresses.insert(0, SERVICE),
        }
    }
    plan
}

/// Returns the node of each host.
pub(crate) fn nodes(plan: &Plan) -> Vec<Node> {
    let courier = Courier::default();
    let node = |host: &HostPlan| host.config.node_of(vec![role(plan, host, &courier)]).unwrap();
    plan.hosts.iter().map(node).collect()
}

fn role(plan: &Plan, host: &HostPlan, courier: &Courier) -> Box<dyn Role> {
    match host.config.name.as_str() {
        CORRESPONDENT => Box::new(Talker::new(false, 1, courier)),
        ROUTER => Box::new(Switch { hosts: ways(plan, host) }),
        name => Box::new(Talker::new(name == "m1", 2, courier)),
    }
}

/// Returns the router's interfaces to the hosts at which the service may be, with the addresses of these hosts.
fn ways(plan: &Plan, router: &HostPlan) -> Vec<(String, Iface, wire::Ipv4Addr)> {
    let mut ways = Vec::new();
    for (iface, interface) in (1..).map(Iface).zip(&router.config.interfaces) {
        let host = plan.hosts.iter().find(|host| host.config.name == interface.name).unwrap();
        let address = *host.config.own_addresses().unwrap().last().unwrap();
        ways.push((interface.name.clone(), iface, address));
    }
    ways
}
