# syntax=docker/dockerfile:1
# One image for every process of kaiweb, and one for the pods that hold GPUs for others to share:
#   docker build -t kaiweb:0.1.0 .
#   docker build -t kaiweb-resource-reservation:0.1.0 --target resource-reservation .
#   docker build -t kaiweb-numa-placement-exporter:0.1.0 --target numa-placement-exporter .   (for the plugin numa)
# Python packages come from requirements/run.txt with their hashes; the pages are built by Node in a stage of its own.

FROM node:24-bookworm-slim AS pages
WORKDIR /app/frontend/web
COPY frontend/web/package.json frontend/web/package-lock.json ./
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY frontend/web ./
RUN npm run build

FROM python:3.12-slim-bookworm AS packages
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
RUN python -m venv /opt/venv
ENV PATH=/opt/venv/bin:$PATH
COPY requirements/run.txt /app/requirements/run.txt
RUN pip install --require-hashes --only-binary :all: -r /app/requirements/run.txt
COPY --from=pages /app/frontend/web/dist /app/frontend/web/dist
RUN python -m whitenoise.compress --quiet /app/frontend/web/dist
# Only the commands `kaiweb` and `celery` point at /app; the code itself is copied below.
COPY pyproject.toml README.md LICENSE NOTICE /app/
COPY kaiweb/__init__.py /app/kaiweb/__init__.py
RUN pip install "hatchling>=1.27" editables && pip install --no-deps --no-build-isolation --editable /app \
    && pip uninstall --yes hatchling editables

FROM python:3.12-slim-bookworm AS kaiweb
LABEL org.opencontainers.image.title="kaiweb" org.opencontainers.image.licenses="Apache-2.0"
RUN groupadd --gid 10000 kaiweb \
    && useradd --uid 10000 --gid 10000 --home-dir /var/lib/kaiweb --create-home --shell /usr/sbin/nologin kaiweb \
    && chmod 0700 /var/lib/kaiweb
ENV PATH=/opt/venv/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    KAIWEB_HOME=/var/lib/kaiweb
WORKDIR /app
COPY --from=packages /opt/venv /opt/venv
COPY --from=packages /app/frontend/web/dist /app/frontend/web/dist
COPY pyproject.toml LICENSE NOTICE manage.py /app/
COPY deploy/crds /app/deploy/crds
COPY deploy/defaults /app/deploy/defaults
COPY deploy/rbac /app/deploy/rbac
COPY kube /app/kube
COPY queues /app/queues
COPY binder /app/binder
COPY scheduler /app/scheduler
COPY sandbox /app/sandbox
COPY frontend/__init__.py /app/frontend/__init__.py
COPY frontend/dashboard /app/frontend/dashboard
COPY kaiweb /app/kaiweb
RUN python -m compileall -q /app && chmod -R a+rX /app
USER 10000:10000
VOLUME /var/lib/kaiweb
EXPOSE 8000 9443
ENTRYPOINT []
CMD ["kaiweb", "up"]

FROM packages AS gpu-packages
COPY requirements/gpu.txt /app/requirements/gpu.txt
RUN pip install --require-hashes --only-binary :all: -r /app/requirements/gpu.txt

# Its program reads the device of its own container through NVML and writes it onto its pod.
FROM kaiweb AS resource-reservation
COPY --from=gpu-packages /opt/venv /opt/venv
CMD ["python", "-m", "binder.reservation_pod"]

# Its program asks the kubelet of its node in which NUMA zones each pod has its resources, and writes that onto the pods.
FROM kaiweb AS numa-placement-exporter
COPY --from=gpu-packages /opt/venv /opt/venv
ENTRYPOINT ["python", "-m", "binder.numa_exporter"]

# The last stage is what a build without --target makes.
FROM kaiweb
