//! What a daemon must have before it changes its namespace: its sockets, its store, and a file for its records. If
//! another process has one of them, or a path leads to another kind of file, the daemon fails before the first change.

use super::Spec;
use super::beside;
use super::clients::ClientListener;
use super::control::Control;
use super::record_file;
use crate::Store;
use data_path::DataPath;
use os::Result;
use os::epoll::Epoll;
use std::sync::Arc;

pub(super) struct Resources {
    /// The epoll instance with which the daemon waits for all its descriptors.
    pub(super) epoll: Arc<Epoll>,
    pub(super) control: Control,
    pub(super) listener: Option<ClientListener>,
    pub(super) store: Option<Store>,
    /// The data path in the kernel, if the configuration asks for it. It forwards nothing yet.
    pub(super) data_path: Option<DataPath>,
}

impl Resources {
    pub(super) fn of(spec: &Spec) -> Result<Self> {
        let epoll = Arc::new(Epoll::new()?);
        let control = Control::open(&epoll, spec.control.as_deref())?;
        let listener = spec.clients.as_deref().map(|path| ClientListener::open(&epoll, path)).transpose()?;
        if let Some(path) = &spec.records {
            record_file::check(path)?;
        }
        Ok(Self { epoll, control, listener, store: spec.open_store()?, data_path: beside::load(spec)? })
    }
}
