//! The shapes of the routes' keys: the lengths of both prefixes, and whether a class is given. The program looks a packet up
//! once for each shape, the most specific first.

use std::collections::{BTreeMap, BTreeSet};
use table::map::MapKey;

/// The largest number of shapes that the program looks up. With more shapes it forwards nothing.
const MOST: usize = 32;
/// The size of the program's configuration: the clock, the number of shapes, and the shapes of 12 bytes each.
const SIZE: usize = 16 + MOST * 12;

pub(crate) type ConfigBytes = [u8; SIZE];
type KeyBytes = [u8; MapKey::SIZE];

/// The keys of all routes, and their shapes.
#[derive(Debug, Default)]
pub(crate) struct Shapes {
    keys: BTreeSet<KeyBytes>,
    /// The number of keys of each shape. The greatest shape is the most specific one.
    shapes: BTreeMap<(u8, u8, u8), u32>,
}

impl Shapes {
    /// Adds a key. Returns whether its shape is new.
    pub(crate) fn add(&mut self, key: KeyBytes) -> bool {
        if !self.keys.insert(key) {
            return false;
        }
        let count = self.shapes.entry(shape(key)).or_default();
        *count += 1;
        *count == 1
    }

    /// Removes a key. Returns whether its shape is not used any more.
    pub(crate) fn remove(&mut self, key: &KeyBytes) -> bool {
        if !self.keys.remove(key) {
            return false;
        }
        let shape = shape(*key);
        let Some(count) = self.shapes.get_mut(&shape) else { return false };
        *count -= 1;
        let is_last = *count == 0;
        if is_last {
            self.shapes.remove(&shape);
        }
        is_last
    }

    /// Returns why the program cannot look up all shapes.
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.shapes.len() > MOST {
            return Err(format!(
                "the routes of this host have more than {MOST} different pairs of prefix lengths"
            ));
        }
        Ok(())
    }

    /// Returns the program's configuration. `t0` is the zero of the node's clock. Each configuration has another `version`.
    pub(crate) fn config(&self, t0: u64, version: u32) -> ConfigBytes {
        let count = self.shapes.len().min(MOST) as u32;
        let shape = |(src, dst, class): (u8, u8, u8)| {
            let masks = [src, dst].map(|len| mask(len).to_be_bytes());
            masks.into_iter().flatten().chain([src, dst, class, 0])
        };
        let shapes = self.shapes.keys().rev().copied().flat_map(shape);
        let parts = t0
            .to_ne_bytes()
            .into_iter()
            .chain(count.to_ne_bytes())
            .chain(version.to_ne_bytes())
            .chain(shapes);
        let mut bytes = [0; SIZE];
        bytes.iter_mut().zip(parts).for_each(|(byte, part)| *byte = part);
        bytes
    }
}

fn shape(key: KeyBytes) -> (u8, u8, u8) {
    let MapKey { src_len, dst_len, has_class, .. } = MapKey::from_bytes(key);
    (src_len, dst_len, has_class)
}

fn mask(len: u8) -> u32 {
    u32::MAX.checked_shl(32 - u32::from(len.min(32))).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use table::{Class, RouteKey};
    use wire::{Ipv4Addr, Prefix};

    fn key(src: u8, dst: u8, class: Option<u8>) -> KeyBytes {
        let address = Ipv4Addr::new(10, 1, 2, 3);
        let [src, dst] = [src, dst].map(|len| Prefix::new(address, len));
        MapKey::new(&RouteKey { class: class.map(Class), src, dst }).to_bytes()
    }

    #[test]
    fn the_most_specific_shape_is_first_and_a_shape_ends_with_its_last_key() {
        let mut shapes = Shapes::default();
        assert!(shapes.add(key(0, 24, None)) && shapes.add(key(0, 32, Some(3))));
        assert!(!shapes.add(key(0, 32, Some(3))) && !shapes.add(key(0, 32, Some(4))));
        let config = shapes.config(7, 9);
        assert_eq!(config[..8], 7u64.to_ne_bytes());
        assert_eq!((&config[8..12], &config[12..16]), (&2u32.to_ne_bytes()[..], &9u32.to_ne_bytes()[..]));
        assert_eq!(config[16..28], [0, 0, 0, 0, 255, 255, 255, 255, 0, 32, 1, 0]);
        assert_eq!(config[28..40], [0, 0, 0, 0, 255, 255, 255, 0, 0, 24, 0, 0]);
        assert!(!shapes.remove(&key(0, 32, Some(3))) && shapes.remove(&key(0, 32, Some(4))));
        assert!(!shapes.remove(&key(0, 32, Some(4))), "it is not there");
        assert!(shapes.keys.iter().eq([&key(0, 24, None)]));
    }

    #[test]
    fn more_shapes_than_the_program_tries_are_refused() {
        let mut shapes = Shapes::default();
        for dst in 0..32 {
            shapes.add(key(0, dst, None));
        }
        assert_eq!(shapes.check(), Ok(()));
        shapes.add(key(1, 0, None));
        assert!(shapes.check().is_err());
    }
}
