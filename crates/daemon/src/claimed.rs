//! What a daemon must own before it changes anything: its sockets, its store, and the file of its records. If another
//! process has one of them, or a path is another kind of file, this is an error, and nothing has been changed.

use super::Spec;
use super::clients::Door;
use super::control::Control;
use super::recording;
use crate::Store;
use os::Result;

pub(super) struct Claimed {
    pub(super) control: Control,
    pub(super) door: Option<Door>,
    pub(super) store: Option<Store>,
}

impl Claimed {
    pub(super) fn of(spec: &Spec) -> Result<Self> {
        let control = Control::open(spec.control.as_deref())?;
        let door = spec.clients.as_deref().map(Door::open).transpose()?;
        if let Some(path) = &spec.records {
            recording::check(path)?;
        }
        Ok(Self { control, door, store: spec.open_store()? })
    }
}
