//! What a daemon must own before it changes anything: its sockets, its store, and the file of its records. If another
//! process has one of them, or a path is another kind of file, this is an error, and nothing has been changed.

use super::Spec;
use super::clients::ClientListener;
use super::control::Control;
use super::record_file;
use crate::Store;
use os::Result;

pub(super) struct Resources {
    pub(super) control: Control,
    pub(super) listener: Option<ClientListener>,
    pub(super) store: Option<Store>,
}

impl Resources {
    pub(super) fn of(spec: &Spec) -> Result<Self> {
        let control = Control::open(spec.control.as_deref())?;
        let listener = spec.clients.as_deref().map(ClientListener::open).transpose()?;
        if let Some(path) = &spec.records {
            record_file::check(path)?;
        }
        Ok(Self { control, listener, store: spec.open_store()? })
    }
}
