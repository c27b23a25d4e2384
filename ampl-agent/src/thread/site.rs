//! Call sites as one thread meets them: their definitions, observers and policies.

use std::collections::hash_map::Entry;

use ampl_core::config::SiteTrace;
use ampl_core::config::site::CodeRange;
use ampl_core::mpi::Function;
use ampl_trace::record::{Kind, put_text};

use super::Thread;
use super::common_callers::CommonCallers;
use crate::call_end::CallEnd;
use crate::sites::SITE_ENTRIES;
use crate::window::holds;

/// Most functions that the ways to a site are told to have in common.
const MOST_COMMON: usize = 5;
/// Stands for every return address; no code is there.
const ANYWHERE: u64 = 1;

impl Thread {
    /// Adds a call to its site's totals; returns the site's index.
    #[inline(always)]
    pub(super) fn visit(&mut self, call: &CallEnd, ticks: u64) -> u32 {
        let site = self.site(call.function, call.address);
        self.sites.add(site, call.function.0, ticks, call.sent, call.received);
        site
    }

    /// True where the site of a call of `function` that returns to `address` is sure to be known, as most in loops are.
    /// Never panics.
    #[inline(always)]
    pub fn is_known(&mut self, function: Function, address: u64) -> bool {
        self.sites.reach(self.site_key(address), function.0)
    }

    /// Address in the table of sites for calls that return to `address`.
    #[inline(always)]
    pub(super) fn site_key(&self, address: u64) -> u64 {
        if self.has_sites { address } else { ANYWHERE }
    }

    /// Defines the site of a call before the call is made: it may never return.
    #[inline(never)]
    pub fn know(&mut self, function: Function, address: u64) {
        self.site(function, address);
    }

    /// Index of the site of a call of `function` that returns to `address`; of all its calls, where sites are not
    /// told apart.
    #[inline(always)]
    pub(super) fn site(&mut self, function: Function, address: u64) -> u32 {
        let (site, new) = self.sites.find(self.site_key(address), function.0);
        if new {
            match self.has_sites {
                true => self.new_site(site, function, address),
                false => self.define_site(site, function, ("", 0), &[]),
            }
        }
        site
    }

    /// Functions of a path that identify a call's site: above 1, a [path](Self::path) number stands for the call's
    /// address.
    pub fn path_frames(&self) -> usize {
        if self.has_sites { self.shared.plan.config.trace.call_path_depth as usize } else { 1 }
    }

    /// True where calls of a site are told apart by the [ways](Self::come_by) they come by.
    pub fn tells_ways(&self) -> bool {
        self.has_sites && self.path_frames() == 1
    }

    /// Has calls from here on come to their sites by that way, numbered by site.
    #[inline(always)]
    pub fn come_by(&mut self, way: u8) {
        self.way = way;
    }

    /// Notes a way to the site of calls of `function` that return to `address`: return addresses and functions from its
    /// caller outwards.
    #[cold]
    pub fn new_way(&mut self, function: Function, address: u64, way: u8, callers: &[u64], functions: &[u64]) {
        let site = self.site(function, address);
        // Entry 0 of the table has calls of several sites.
        if site == 0 {
            return;
        }
        let mut body = vec![site.into(), way.into()];
        for &frame in std::iter::once(&address).chain(callers) {
            body.extend(self.code_at(frame));
        }
        self.stream.record(Kind::Path, 0, &body);
        self.callers.insert((site, way), callers.into());
        let functions = &functions[..functions.len().min(MOST_COMMON)];
        let common = match self.common.entry(site) {
            Entry::Vacant(entry) => entry.insert(CommonCallers::new(functions)),
            Entry::Occupied(entry) => {
                let known = entry.into_mut();
                if !known.add(functions) {
                    return;
                }
                known
            }
        };
        let CommonCallers { functions, differ } = common.clone();
        let mut body = vec![u64::from(site), u64::from(differ)];
        for function in functions {
            let [module, offset] = self.code_at(function);
            body.extend([module, offset + 1]);
        }
        self.stream.record(Kind::Way, 0, &body);
    }

    /// The return address of a call and the way that it came by in one word.
    #[inline(always)]
    pub fn origin(&self, address: u64) -> u64 {
        address ^ u64::from(self.way) << 56
    }

    /// Number of the path of these return addresses, innermost first, folded; it stands for a call's return address.
    pub fn path(&mut self, frames: &[u64]) -> u64 {
        self.paths.number(frames)
    }

    #[cold]
    pub(super) fn new_site(&mut self, index: u32, function: Function, address: u64) {
        let frames = self.paths.frames(address);
        self.rarely(|thread| {
            let (path, offset) = (thread.shared.resolve)(frames[0]);
            thread.define_site(index, function, (&path, offset), &frames[1..]);
        });
    }

    #[cold]
    fn define_site(&mut self, index: u32, function: Function, (path, offset): (&str, u64), callers: &[u64]) {
        if self.shared.events.observes_sites() {
            self.observers.resize(SITE_ENTRIES, 0);
            self.observers[index as usize] = self.shared.events.at_site(path, offset);
        }
        if !self.shared.policies.is_empty() {
            self.selected.resize(SITE_ENTRIES, SiteTrace::On);
            let policy = self.shared.policies.of(function, path, offset);
            self.selected[index as usize] = policy;
            if policy == SiteTrace::Off {
                self.sites.mute(index);
            }
        }
        let observers = self.observers.get(index as usize).is_some_and(|&metrics| metrics != 0);
        if observers || self.policy(index) != SiteTrace::On {
            self.sites.watch(index);
        }
        let mut body = vec![u64::from(index), u64::from(self.module(path)), offset];
        for &caller in callers {
            body.extend(self.code_at(caller));
        }
        self.stream.record(Kind::Site, 0, &body);
    }

    /// Module and offset of the code at `address`, as records have them.
    fn code_at(&mut self, address: u64) -> [u64; 2] {
        let (path, offset) = (self.shared.resolve)(address);
        [self.module(&path).into(), offset]
    }

    /// The number of the module at `path`, which is in the journal from here on.
    pub fn module(&mut self, path: &str) -> u32 {
        let (module, new) = self.shared.module_number(path);
        if new {
            let mut body = vec![u64::from(module)];
            put_text(&mut body, path);
            self.stream.record(Kind::Module, 0, &body);
        }
        module
    }

    /// Adds a call at `site` to the metrics that observe it: its ticks, bytes sent and received.
    #[inline]
    pub(super) fn observe_site(&mut self, site: u32, call: [u64; 3]) {
        if !self.observers.is_empty() {
            self.totals.add_at_site(self.observers[site as usize], call, &self.shared.events);
        }
    }

    /// True where a call of the marker's function that returns to `address` comes from the marker's site.
    pub(super) fn marker_accepts(&mut self, address: u64, ranges: &[CodeRange]) -> bool {
        let marker = self.marker.unwrap_or_default();
        let (index, _) = self.sites.find(address, marker);
        if let Some(&(_, accepts)) = self.marker_sites.iter().find(|(known, _)| *known == index) {
            return accepts;
        }
        let frames = self.paths.frames(address);
        let (path, offset) = (self.shared.resolve)(frames[0]);
        let accepts = holds(ranges, &path, offset);
        self.define_site(index, Function(marker), (&path, offset), &frames[1..]);
        self.marker_sites.push((index, accepts));
        accepts
    }
}
