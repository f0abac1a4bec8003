//! A pool of buffers. Each segment and each read needs a buffer for a short time. The allocation of a buffer would cost
//! about as much as all else that a stack does with a segment.

/// The largest number of buffers that are kept.
const MOST: usize = 64;
/// The largest capacity of a buffer that is kept, in bytes.
const LARGEST: usize = 4096;

/// A pool of empty buffers for segments and reads: at most 64, of at most 4096 bytes each.
#[derive(Debug, Default)]
pub struct BufferPool(Vec<Vec<u8>>);

impl BufferPool {
    /// Returns an empty buffer: one from the pool with its capacity, or a new one if the pool is empty.
    pub fn take(&mut self) -> Vec<u8> {
        self.0.pop().unwrap_or_default()
    }

    /// Clears a buffer and returns it to the pool. It is freed if the pool is full, or if its capacity is above 4096
    /// bytes.
    pub fn give(&mut self, mut buffer: Vec<u8>) {
        if self.0.len() < MOST && buffer.capacity() <= LARGEST {
            buffer.clear();
            self.0.push(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_comes_back_without_content() {
        let mut pool = BufferPool::default();
        let buffer = b"said".to_vec();
        let place = buffer.as_ptr();
        pool.give(buffer);
        let again = pool.take();
        assert_eq!((again.as_ptr(), again.len()), (place, 0));
        assert_eq!(pool.take().capacity(), 0, "there was one");
    }

    #[test]
    fn no_more_is_kept_than_is_of_use() {
        let mut pool = BufferPool::default();
        pool.give(Vec::with_capacity(LARGEST + 1));
        assert_eq!(pool.0.len(), 0);
        (0..=MOST).for_each(|_| pool.give(Vec::with_capacity(LARGEST)));
        assert_eq!(pool.0.len(), MOST);
    }
}
