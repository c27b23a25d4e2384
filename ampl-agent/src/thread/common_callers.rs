//! Functions that all ways to a site have in common.

/// Functions on the ways to one site.
#[derive(Clone, Debug)]
pub(super) struct CommonCallers {
    /// Functions that the ways have in common, from the caller of the site's own outwards.
    pub functions: Box<[u64]>,
    /// True where they differ beyond.
    pub differ: bool,
}

impl CommonCallers {
    /// Functions of the first way to a site.
    pub(super) fn new(functions: &[u64]) -> Self {
        Self { functions: functions.into(), differ: false }
    }

    /// Adds a way; returns whether anything is known otherwise now.
    pub(super) fn add(&mut self, own: &[u64]) -> bool {
        let known = &self.functions;
        let same = known.iter().zip(own).take_while(|(known, own)| known == own).count();
        let differs = same < known.len().max(own.len());
        let is_news = differs && !(self.differ && same == known.len());
        if is_news {
            (self.functions, self.differ) = (known[..same].into(), true);
        }
        is_news
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_those_in_common() {
        let mut all = CommonCallers::new(&[1, 2, 3]);
        assert!(!all.add(&[1, 2, 3]) && !all.differ);
        assert!(all.add(&[1, 4, 3]) && all.differ);
        assert!(!all.add(&[1, 2, 3]) && *all.functions == [1]);
        assert!(all.add(&[5]) && all.functions.is_empty());
    }
}
