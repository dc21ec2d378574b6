"""Rows of the last reading of utilisation, of each workload over time, and their sums in the usage history.

Utilisation is a percentage. What was not read has no row: it is unknown, never zero.
"""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Q

from queues.models import MAX_NAME
from queues.models.lengths import MAX_KEY

MAX_DEVICE = 64


class Reading(models.Model):
    """The last attempt to read the series: one row.

    Attributes
    ----------
    read_at : when series were last read
    error : why the last attempt failed, empty if it did not
    devices : how many devices of known nodes the last reading had
    """

    only = models.BooleanField(primary_key=True, default=True)
    tried_at = models.DateTimeField()
    read_at = models.DateTimeField(null=True)
    error = models.TextField(blank=True, default="")
    devices = models.IntegerField(default=0)

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(condition=Q(only=True), name="utilisation_reading_single_row")
        ]

    def __str__(self) -> str:
        return self.error or f"{self.devices} devices at {self.read_at}"


class DeviceUtilisation(models.Model):
    """The utilisation of one device in the last reading.

    Attributes
    ----------
    device : the number of the device on its node as the driver counts it, for a MIG instance `number:instance`.
        The cells of the dashboard are numbered by the scheduler; the two need not agree
    pod : key of the pod to which the kubelet gave the device, empty if it gave it to none
    idle_since : when this pod's utilisation fell below the threshold; NULL while it is not below
    """

    node = models.CharField(max_length=MAX_NAME)
    device = models.CharField(max_length=MAX_DEVICE)
    uuid = models.CharField(max_length=MAX_NAME, blank=True, default="")
    pod = models.CharField(max_length=MAX_KEY, blank=True, default="", db_index=True)
    percent = models.FloatField()
    measured_at = models.DateTimeField()
    idle_since = models.DateTimeField(null=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["node", "device", "pod"], name="utilisation_device_unique"
            )
        ]

    def __str__(self) -> str:
        return f"GPU {self.device} of {self.node}: {self.percent:.0f} %"


class WorkloadUtilisation(models.Model):
    """The utilisation of the GPUs of one workload in the last reading.

    Attributes
    ----------
    percent : mean over the known devices
    known : GPUs whose utilisation is known
    idle : those of them that are below the threshold
    idle_since : since when all known ones are
    """

    workload = models.CharField(max_length=MAX_KEY, primary_key=True)
    percent = models.FloatField()
    known = models.FloatField()
    idle = models.FloatField()
    measured_at = models.DateTimeField()
    idle_since = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"{self.workload}: {self.percent:.0f} %"


class WorkloadStep(models.Model):
    """The readings of one workload in one step of its series (`STEP` of `kaiweb.utilisation.course`)."""

    workload = models.CharField(max_length=MAX_KEY)
    start = models.DateTimeField()
    percent_sum = models.FloatField()
    readings = models.IntegerField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["workload", "start"], name="utilisation_step_unique")
        ]
        indexes: ClassVar = [models.Index(fields=["start"], name="utilisation_step_start")]

    def __str__(self) -> str:
        return f"{self.workload} from {self.start}"


class UtilisationUse(models.Model):
    """GPU-seconds that were held with known utilisation, and those of them that were not used.

    Rows have the tiers of the usage history, whose sampler writes them and whose roll-up sums them up.
    """

    KEYS: ClassVar = ("queue", "owner", "model")
    SUMS: ClassVar = ("known", "idle")

    tier = models.IntegerField()
    start = models.DateTimeField()
    queue = models.CharField(max_length=MAX_NAME)
    owner = models.CharField(max_length=MAX_NAME)
    model = models.CharField(max_length=MAX_NAME)
    known = models.FloatField()
    idle = models.FloatField()

    class Meta:
        indexes: ClassVar = [models.Index(fields=["tier", "start"], name="utilisation_use_time")]

    def __str__(self) -> str:
        return f"{self.owner} in {self.queue} on {self.model}: {self.tier} s from {self.start}"
